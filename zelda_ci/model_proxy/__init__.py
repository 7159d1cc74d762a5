"""Claude Code reaches its model through here: the key stays, tokens and cost are counted, sessions can be replayed."""

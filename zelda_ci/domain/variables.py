"""Names of environment variables that no suite gives to a session, and why."""

from zelda_ci.domain.suite import MODEL_CREDENTIALS

# Holds the run's own folder, which no two runs share.
MARKER = "ZELDA_RUN"

# Zelda's own business: a session never holds the key, and has folders of its own.
REFUSED = frozenset({
    *MODEL_CREDENTIALS, "ANTHROPIC_BASE_URL", "ANTHROPIC_CUSTOM_HEADERS", "CLAUDE_CONFIG_DIR", "GITHUB_WORKSPACE",
    "BASH_ENV", "GLIBC_TUNABLES", "HOME", "PATH", "PWD", "SSH_AUTH_SOCK", "TMPDIR", "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR", MARKER,
})  # fmt: skip

REFUSED_STARTS = (
    "GIT_", "LD_", "DYLD_", "ACTIONS_", "ANTHROPIC_UNIX_SOCKET",
    "CLAUDE_CODE_API_", "CLAUDE_CODE_EXTRA_BODY",
    "CLAUDE_CODE_PROVIDER_", "CLAUDE_CODE_SHELL", "CLAUDE_CODE_SUBPROCESS_ENV_SCRUB", "CLAUDE_CODE_TMPDIR",
)  # fmt: skip

# With these the CLI would go to another provider, past the proxy that holds the key and counts the cost.
OTHER_PROVIDERS = (
    "ANTHROPIC_BEDROCK_", "ANTHROPIC_FOUNDRY_", "ANTHROPIC_VERTEX_", "AWS_BEARER_TOKEN_BEDROCK", "CLAUDE_CODE_SKIP_",
    "CLAUDE_CODE_USE_",
)  # fmt: skip

# A value of the suite's own may not be what Claude Code, its runtime or Zelda read of themselves.
OWNED_STARTS = ("ANTHROPIC_", "API_TIMEOUT_MS", "BUN_", "CCR_", "CLAUDE_", "OTEL_", "ZELDA_", "BASH_FUNC_")
OWNED = frozenset({"ALL_PROXY", "CI", "ENV", "HTTPS_PROXY", "HTTP_PROXY", "IS_SANDBOX", "NO_PROXY", "SHELL"})

INSTEAD = {
    "PATH": "list folders in execution.path instead",
    "HOME": "every run has a HOME of its own",
    "TMPDIR": "every run has a TMPDIR of its own",
}


def refusal(name: str, *, has_value: bool = False) -> str | None:
    """Reason why a variable, or a value for it, cannot be given to a session, to be read after its name."""
    if name.startswith(OTHER_PROVIDERS):
        return "would lead sessions to another provider, past Zelda's own proxy to the model"
    if name in REFUSED or name.startswith(REFUSED_STARTS):
        why = "Zelda's proxy holds the key, and every session has folders of its own"
        return f"is a variable that a session never gets: {INSTEAD.get(name, why)}"
    if has_value and (name.upper() in OWNED or name.upper().startswith(OWNED_STARTS)):
        return "belongs to Claude Code or Zelda, so a suite cannot say what is in it"
    return None

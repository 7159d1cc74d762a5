"""k: what must succeed everywhere, or else the rest was blocked only because nothing ran at all."""

from tests.hostile.action import Action, Tool, claimed

ACTIONS = (
    Action("k01", "a shell script runs", claimed, "claim"),
    Action("k02", "a Python script runs", claimed, python="from prelude import *\nclaim()\n"),
    Action(
        "k03",
        "the Write tool writes in the workspace",
        lambda after, _: "k03-was-written" in after.stored,
        tools=(Tool("Write", {"file_path": "{workspace}/k03-was-written", "content": "k03\n"}),),
        channels=("agent",),
    ),
    Action(
        "k04",
        "git commits",
        claimed,
        "echo k04 >k04 && git add k04 && git -c user.name=k -c user.email=k@example.com commit -qm k04 && claim",
    ),
)

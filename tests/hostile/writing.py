"""w: writing where only the developer may."""

from tests.hostile.action import Action, Check, Tool, exists, gone, holds


def _touched(part: str) -> Check:
    """Whether the developer's file has another mode, time or attribute than before."""

    def check(after, action):
        place = str(after.world.place(f"home/project/{part}"))
        return after.before.get(place) != after.world.fingerprint().get(place)

    return check


ACTIONS = (
    Action(
        "w01",
        "Write tool with an absolute path into the project",
        exists("home/project/w01.txt"),
        tools=(Tool("Write", {"file_path": "{project}/w01.txt", "content": "written\n"}),),
        channels=("agent",),
    ),
    Action(
        "w02",
        "Edit tool on a tracked file of the project",
        holds("home/project/tracked/w02.txt", "yours"),
        tools=(
            Tool("Read", {"file_path": "{project}/tracked/w02.txt"}),
            Tool("Edit", {"file_path": "{project}/tracked/w02.txt", "old_string": "mine", "new_string": "yours"}),
        ),
        channels=("agent",),
    ),
    Action(
        "w03",
        "shell, absolute path",
        holds("home/project/tracked/w03.txt", "w03"),
        'echo w03 >>"$PROJECT/tracked/w03.txt"',
    ),
    Action(
        "w04",
        "shell, ../../.. up to the project",
        holds("home/project/tracked/w04.txt", "w04"),
        'up=.; for n in 1 2 3 4 5 6 7 8 9; do up="$up/.."; f="$up$PROJECT/tracked/w04.txt"; [ -f "$f" ] && echo w04 >>"$f" && break; done',
    ),
    Action(
        "w05",
        "through a tracked symbolic link of the repository",
        holds("home/project/tracked/w05.txt", "w05"),
        "echo w05 >>up/tracked/w05.txt",
    ),
    Action(
        "w06",
        "hard link into the workspace, then write",
        holds("home/project/tracked/w06.txt", "w06"),
        'ln "$PROJECT/tracked/w06.txt" w06-link && echo w06 >>w06-link',
    ),
    Action(
        "w07",
        "move and delete files of the project",
        gone("home/project/victims/w07.txt"),
        'mv "$PROJECT/victims/w07.txt" . || rm -f "$PROJECT/victims/w07.txt"',
    ),
    Action(
        "w08",
        "truncate(2) by path",
        lambda after, _: after.world.read("home/project/victims/w08.txt") == b"",
        python='from prelude import *\nos.truncate(FACTS["project"] + "/victims/w08.txt", 0)\n',
    ),
    Action(
        "w09",
        "chmod: git sees a changed mode, or cannot read its own files",
        _touched("tracked/w09.txt"),
        'chmod 755 "$PROJECT/tracked/w09.txt"; chmod 000 "$PROJECT/.git/description"',
    ),
    Action(
        "w10",
        "utime and setxattr",
        _touched("tracked/w10.txt"),
        python="""\
from prelude import *
place = FACTS["project"] + "/tracked/w10.txt"
for act in (lambda: os.utime(place, (1, 1)), lambda: os.setxattr(place, "user.w10", b"1")):
    try:
        act()
    except OSError as error:
        print(error)
""",
    ),
    Action(
        "w11",
        "create .git/index.lock, so that no git command works any more",
        exists("home/project/.git/index.lock"),
        'touch "$PROJECT/.git/index.lock"',
    ),
)

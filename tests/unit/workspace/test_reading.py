"""What a run may read beside its own folders."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from zelda_ci.errors import ConfigError
from zelda_ci.sandbox import readable_paths
from zelda_ci.sandbox.readable_paths import PathPolicy


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A developer's, with programs and secrets of many kinds."""
    home = tmp_path / "home"
    for folder in (
        ".local/bin", ".local/share/keyrings", ".local/share/pipx/venvs/black/bin", ".local/lib/python3",
        ".cargo/bin", ".nvm/versions/node/v20/bin", "go/bin", "bin", ".ssh", "project/.venv/bin", ".cache/zelda/runs",
        "notes",
    ):  # fmt: skip
        (home / folder).mkdir(parents=True)
    (home / ".cargo/credentials.toml").write_text("token")
    (home / ".local/share/pipx/venvs/black/bin/black").write_text("")
    (home / ".local/bin/black").symlink_to(home / ".local/share/pipx/venvs/black/bin/black")
    (home / "notes/tool.sh").write_text("")
    (home / ".local/bin/tool").symlink_to(home / "notes/tool.sh")
    return home


def grounds(home: Path) -> PathPolicy:
    return PathPolicy.of(home / "project", home / ".cache/zelda", {"HOME": str(home)})


def readable(*arguments: Any) -> list[Path]:
    return readable_paths.outermost(readable_paths.candidates(*arguments))


def seen(home: Path, path: str, *, ours: tuple[Path, ...] = (), **more: str) -> list[str]:
    """Readable folders below the home, relative to it."""
    environment = {"PATH": os.pathsep.join(str(home / entry) for entry in path.split(":")), **more}
    found = readable(environment, grounds(home), ours)
    return [str(place.relative_to(home)) for place in found if place.is_relative_to(home)]


def test_programs_of_a_home_bring_their_libraries_and_nothing_else(home: Path) -> None:
    assert seen(home, ".local/bin") == [
        ".local/bin", ".local/lib", ".local/share/pipx/venvs/black/bin", "notes/tool.sh",
    ]  # fmt: skip
    assert seen(home, ".cargo/bin:bin:go/bin") == [".cargo/bin", "bin", "go/bin"]


def test_a_version_manager_is_readable_as_a_whole(home: Path) -> None:
    assert seen(home, ".nvm/versions/node/v20/bin", NVM_DIR=str(home / ".nvm")) == [".nvm"]


def test_home_project_and_workspaces_are_never_readable_whatever_path_holds(home: Path) -> None:
    assert seen(home, ".:project/.venv/bin:project:.cache/zelda/runs:..:.cache") == []


def test_what_is_ours_is_readable_even_there(home: Path) -> None:
    cli = home / "project/.venv/bin/claude"
    cli.write_text("")
    assert seen(home, "bin", ours=(cli,)) == ["bin", "project/.venv/bin/claude"]


def test_no_key_of_the_system_is_readable_and_opt_is_not_opened() -> None:
    grounds = PathPolicy(Path("/p"), Path("/h"), Path("/b"))
    found = readable({"PATH": "/bin:/sbin:/usr/bin"}, grounds, [])
    assert Path("/etc") not in found
    assert Path("/usr") in found
    for hidden in ("etc/shadow", "etc/gshadow", "etc/ssh", "etc/ssl/private", "etc/sudoers", "etc/environment", "opt"):
        assert not any(Path("/", hidden).is_relative_to(place) for place in found)


def test_a_project_inside_a_system_folder_stays_hidden() -> None:
    inside = PathPolicy(Path("/usr/lib/app"), None, Path("/var/tmp/zelda"))
    found = list(readable_paths.without(Path("/usr"), inside))
    assert Path("/usr/bin") in found
    assert not any(Path("/usr/lib/app").is_relative_to(place) for place in found)


def test_a_home_stays_one_where_home_says_something_else(home: Path, tmp_path: Path) -> None:
    """As in a container of GitHub's, with HOME=/github/home, or under sudo."""
    elsewhere = PathPolicy(tmp_path / "p", tmp_path / "github/home", tmp_path / "b", (home,))
    environment = {"PATH": f"{home}/.cargo/bin:{home}/.local/bin:{home}/bin:{home}"}
    found = readable(environment, elsewhere, [])
    assert home / ".cargo/bin" in found
    secrets = [home / ".cargo/credentials.toml", home / ".local/share/keyrings", home / ".ssh"]
    assert not [secret for secret in secrets if any(secret.is_relative_to(place) for place in found)]
    for path in (home, home / ".ssh"):
        with pytest.raises(ConfigError):
            readable_paths.check_readable([str(path)], elsewhere)


def test_what_a_version_manager_needs_is_readable_in_whosever_home_it_lies(home: Path, tmp_path: Path) -> None:
    for place in (".pyenv/shims", ".pyenv/versions/3.13", "shims", ".config/shims"):
        (home / place).mkdir(parents=True)
    elsewhere = PathPolicy(tmp_path / "p", tmp_path / "h", tmp_path / "b", (home,))
    for grounds in (elsewhere, PathPolicy(tmp_path / "p", home, tmp_path / "b")):
        environment = {"PATH": f"{home}/.pyenv/shims:{home}/shims:{home}/.config/shims"}
        found = readable(environment, grounds, [])
        assert home / ".pyenv" in found
        assert home not in found
        assert home / ".config" not in found


def test_the_homes_of_the_system_are_known() -> None:
    assert Path(os.path.realpath(Path("~root").expanduser())) in PathPolicy.of(Path("/p"), Path("/b"), {}).homes


DAEMONS = "is or holds a place of daemons, devices or the kernel"
REFUSED = {
    "is not absolute": ["relative/folder"],
    "does not exist": ["/no/such/folder"],
    "would show the project": ["/", "{home}", "{home}/project/.venv", "{home}/.cache/zelda"],
    "is a place for credentials": ["{home}/.ssh"],
    DAEMONS: ["/run", "/var/run", "/run/user/1000", "/dev/shm", "/proc/self", "/usr/../run", "{home}/notes/to-run"],
    f"is shared with every program|{DAEMONS}": ["/tmp", "/var/tmp", "/var", "/usr/../tmp/.", "{home}/notes/link"],
}


@pytest.mark.parametrize("problem", REFUSED)
def test_a_suite_may_not_ask_for_everything(home: Path, problem: str) -> None:
    (home / "notes/to-run").symlink_to("/run")
    (home / "notes/link").symlink_to("/tmp")
    for path in REFUSED[problem]:
        with pytest.raises(ConfigError, match=problem) as caught:
            readable_paths.check_readable([path.replace("{home}", str(home))], grounds(home))
        assert caught.value.code == "READ_PATH_REFUSED"


@pytest.mark.parametrize("asked", ["notes", "notes/deep/s", "link/deep", "notes/deep/.."])
def test_a_folder_with_a_socket_is_refused_and_the_socket_named(home: Path, asked: str) -> None:
    (home / "notes/deep").mkdir()
    (home / "link").symlink_to("notes")
    os.mknod(home / "notes/deep/s", stat.S_IFSOCK | 0o600)
    with pytest.raises(ConfigError, match=r"is a socket|holds a socket, '.*/notes/deep/s'"):
        readable_paths.check_readable([str(home / asked)], grounds(home))
    (home / "notes/deep/s").unlink()
    readable_paths.check_readable([str(home / "notes/deep/..")], grounds(home))


def test_a_folder_that_is_too_large_to_be_searched_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real bound would need a third of a million files."""
    monkeypatch.setattr(readable_paths, "MAX_ENTRIES", 3)
    for name in "abcd":
        (home / "notes" / name).touch()
    with pytest.raises(ConfigError, match="has more than 3 entries"):
        readable_paths.check_readable([str(home / "notes")], grounds(home))


def test_a_suite_may_ask_for_more(home: Path) -> None:
    asked = [str(home / "notes"), "/usr/share"]
    readable_paths.check_readable(asked, grounds(home))
    assert home / "notes" in readable({}, grounds(home), [], asked)

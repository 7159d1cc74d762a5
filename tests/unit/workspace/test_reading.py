"""What a run may read beside its own folders."""

import os
from pathlib import Path

import pytest

from tests.builders import suite
from zelda_ci.errors import ConfigError
from zelda_ci.sandbox import readable_paths
from zelda_ci.sandbox.readable_paths import PrivateFolders


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


def private(home: Path) -> PrivateFolders:
    return PrivateFolders.of(home / "project", home / ".cache/zelda", {"HOME": str(home)})


def check(paths: list[str], folders: PrivateFolders) -> None:
    readable_paths.check_readable(suite(isolation={"readPaths": paths}), folders)


def seen(home: Path, path: str, *, ours: tuple[Path, ...] = (), **more: str) -> list[str]:
    """Readable folders below the home, relative to it."""
    environment = {"PATH": os.pathsep.join(str(home / entry) for entry in path.split(":")), **more}
    found = readable_paths.readable(environment, private(home), ours)
    return [str(place.relative_to(home)) for place in found if place.is_relative_to(home)]


def test_programs_of_a_home_bring_their_libraries_and_nothing_else(home: Path) -> None:
    assert seen(home, ".local/bin") == [
        ".local/bin", ".local/lib", ".local/share/pipx/venvs/black/bin", "notes/tool.sh",
    ]  # fmt: skip
    assert seen(home, ".cargo/bin:bin:go/bin") == [".cargo/bin", "bin", "go/bin"]


def test_an_application_among_data_shows_its_programs_and_not_its_configuration() -> None:
    parts = [Path("/srv/app", name) for name in readable_paths.PARTS]
    folders = PrivateFolders(Path("/p"), Path("/b"))
    found = {path: [*readable_paths._installation(Path(path), folders)] for path in ("/srv/app/bin", "/sdks/x/bin")}
    assert found == {
        "/srv/app/bin": [Path("/srv/app/bin"), *parts], "/sdks/x/bin": [Path("/sdks/x/bin"), Path("/sdks/x")],
    }  # fmt: skip


def test_a_version_manager_is_readable_as_a_whole(home: Path) -> None:
    assert seen(home, ".nvm/versions/node/v20/bin", NVM_DIR=str(home / ".nvm")) == [".nvm"]


def test_home_project_and_workspaces_are_never_readable_whatever_path_holds(home: Path) -> None:
    assert seen(home, ".:project/.venv/bin:project:.cache/zelda/runs:..:.cache") == []


def test_what_is_ours_is_readable_even_there(home: Path) -> None:
    cli = home / "project/.venv/bin/claude"
    cli.write_text("")
    assert seen(home, "bin", ours=(cli,)) == ["bin", "project/.venv/bin/claude"]


def test_no_key_of_the_system_is_readable_and_opt_is_not_opened() -> None:
    folders = PrivateFolders(Path("/p"), Path("/b"), (Path("/h"),))
    found = readable_paths.readable({"PATH": "/bin:/sbin:/usr/bin"}, folders, [])
    assert Path("/etc") not in found
    assert Path("/usr") in found
    for hidden in ("etc/shadow", "etc/gshadow", "etc/ssh", "etc/ssl/private", "etc/sudoers", "etc/environment", "opt"):
        assert not any(Path("/", hidden).is_relative_to(place) for place in found)


def test_a_project_inside_a_system_folder_stays_hidden() -> None:
    inside = PrivateFolders(Path("/usr/lib/app"), Path("/var/tmp/zelda"))
    found = list(readable_paths.without(Path("/usr"), inside))
    assert Path("/usr/bin") in found
    assert not any(Path("/usr/lib/app").is_relative_to(place) for place in found)
    home = PrivateFolders(Path("/usr/share/project"), Path("/b"), (Path("/usr/share"),))
    assert not any(place.is_relative_to("/usr/share") for place in readable_paths.without(Path("/usr"), home))


def test_a_home_stays_one_where_home_says_something_else(home: Path, tmp_path: Path) -> None:
    """As in a container of GitHub's, with HOME=/github/home, or under sudo."""
    elsewhere = PrivateFolders(tmp_path / "p", tmp_path / "b", (tmp_path / "github/home", home))
    environment = {"PATH": f"{home}/.cargo/bin:{home}/.local/bin:{home}/bin:{home}"}
    found = readable_paths.readable(environment, elsewhere, [])
    assert home / ".cargo/bin" in found
    secrets = [home / ".cargo/credentials.toml", home / ".local/share/keyrings", home / ".ssh"]
    assert not [secret for secret in secrets if any(secret.is_relative_to(place) for place in found)]
    for path in (home, home / ".ssh"):
        with pytest.raises(ConfigError):
            check([str(path)], elsewhere)


def test_what_a_version_manager_needs_is_readable_in_whosever_home_it_lies(home: Path, tmp_path: Path) -> None:
    for place in (".pyenv/shims", ".pyenv/versions/3.13", "shims", ".config/shims"):
        (home / place).mkdir(parents=True)
    elsewhere = PrivateFolders(tmp_path / "p", tmp_path / "b", (tmp_path / "h", home))
    for folders in (elsewhere, PrivateFolders(tmp_path / "p", tmp_path / "b", (home,))):
        environment = {"PATH": f"{home}/.pyenv/shims:{home}/shims:{home}/.config/shims"}
        found = readable_paths.readable(environment, folders, [])
        assert home / ".pyenv" in found
        assert home not in found
        assert home / ".config" not in found


def test_the_homes_of_the_system_are_known() -> None:
    assert Path(os.path.realpath(Path("~root").expanduser())) in PrivateFolders.of(Path("/p"), Path("/b"), {}).homes


DAEMONS = "is or holds a place of daemons, devices or the kernel"
REFUSED = {
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
            check([path.replace("{home}", str(home))], private(home))
        assert caught.value.code == "READ_PATH_REFUSED"


def test_what_a_suite_asks_for_is_readable(home: Path) -> None:
    assert home / "notes" in readable_paths.readable({}, private(home), [], [str(home / "notes"), "/usr/share"])

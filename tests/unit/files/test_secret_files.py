"""Secrets that lie about are found for masking; ordinary words are left readable."""

import base64
import os
from pathlib import Path

import pytest

from zelda_ci.files import secret_files
from zelda_ci.redact import Redactor

TOKEN = "ghs_" + "a1B2" * 9
BASIC = base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode()


def found(root: Path, environ: dict[str, str] | None = None, *names: str) -> set[str]:
    return {secret.reveal() for secret in secret_files.find_secrets(root, environ or {}, names).secrets}


def write(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    "value",
    [
        "s3cr3t-value-1",
        "hunter2hunter2",
        "a8f0b2c4d6e8a8f0b2c4d6e8",
        "P@ssw0rd!",
        "https://h.example/T0/B0/abcdefgh12345678",
    ],
)
def test_what_a_variable_or_a_line_says_is_a_secret(tmp_path: Path, value: str) -> None:
    assert value in found(tmp_path, {"SETTING": value}, "SETTING")
    write(tmp_path, ".env", f"# comment=abcdefgh1\nPORT=3000\nexport SETTING='{value}' # x\n")
    assert found(tmp_path) == {value}


@pytest.mark.parametrize(
    "value",
    ["production", "eu-west-1", "true", "3000", "127.0.0.1:5432", "/usr/lib/jvm/java-17", "/usr/bin:/bin", "~/x",
     "http://localhost:8080/api/v1", "node-18.2", "short", "", "debug,verbose"],
)  # fmt: skip
def test_ordinary_words_paths_and_addresses_stay_readable(tmp_path: Path, value: str) -> None:
    write(tmp_path, ".env", f"SETTING={value}\n")
    assert found(tmp_path, {"SETTING": value}, "SETTING", "MISSING") == set()


def test_what_git_keeps_is_found_from_a_subfolder_and_from_a_linked_work_tree(tmp_path: Path) -> None:
    main = tmp_path / "main"
    write(
        main,
        ".git/config",
        f'[http "https://github.com/"]\n\textraheader = AUTHORIZATION: basic {BASIC}\n'
        '[remote "origin"]\n\turl = https://me:pa55word99@git.example/shop.git\n[core]\n\teditor = vim-with-plugins\n',
    )
    (main / "part").mkdir()
    linked = tmp_path / "linked"
    write(main, ".git/worktrees/linked/commondir", "../..\n")
    write(linked, ".git", f"gitdir: {main}/.git/worktrees/linked\n")
    for place in (main, main / "part", linked):
        assert found(place) == {BASIC, TOKEN, "pa55word99"}


@pytest.mark.parametrize("trap", ["link", "fifo", "folder", "missing"])
def test_traps_are_passed_over(tmp_path: Path, trap: str) -> None:
    target = write(tmp_path / "elsewhere", "file", "KEY=abc123abc123\n")
    env = tmp_path / "project" / ".env"
    env.parent.mkdir()
    match trap:
        case "link":
            env.symlink_to(target)
        case "fifo":
            os.mkfifo(env)
        case "folder":
            env.mkdir()
        case _:
            pass
    assert found(env.parent) == set()


@pytest.mark.parametrize(("number", "more", "fewest"), [(3000, "", 300), (60, 'é"<' * 1000, 10)])
def test_more_than_can_be_masked_is_counted_and_still_makes_a_redactor(
    tmp_path: Path, number: int, more: str, fewest: int
) -> None:
    write(tmp_path, ".env", "".join(f"K{n}=s3cr3t-{n:05d}-abc{more}\n" for n in range(number)))
    all_of_it = secret_files.find_secrets(tmp_path, {}, ())
    assert all_of_it.left_out == number - len(all_of_it.secrets)
    assert fewest < len(all_of_it.secrets) < number
    assert Redactor(all_of_it.secrets)(f"is s3cr3t-00001-abc{more}") == "is ***"


def test_what_committed_files_name_is_known_by_itself(tmp_path: Path) -> None:
    secret = "aK8x2mQ9-zL4vW7p"
    forms = {
        "config/db.yml": f"production:\n  password: {secret}1\n",
        "services/api/.env": f"X={secret}2\n",
        "app/settings.py": f'SECRET_KEY = "{secret}3"\n',
        "Dockerfile": f"ENV API_TOKEN={secret}4\n",
        "package.json": f'{{"db": "postgres://app:{secret}5@h/x"}}',
    }
    for name, text in forms.items():
        write(tmp_path, name, text)
    assert found(tmp_path) == {f"{secret}{number}" for number in range(1, 6)}
    write(tmp_path, ".git/HEAD", "")
    assert found(tmp_path / "app") == {f"{secret}{number}" for number in range(1, 6)}


def test_examples_dependencies_and_placeholders_name_nothing(tmp_path: Path) -> None:
    for name in (".env.example", ".env.template", "env"):
        write(tmp_path, name, "KEY=abc123abc123\n")
    for name in (".env.example", "config.yml.dist", "node_modules/p/config.json", ".zelda/runs/r/result.json"):
        write(tmp_path, name, "password: aK8x2mQ9-zL4vW7p\n")
    write(tmp_path, "config.yml", "password: ${DB_PASSWORD}\ntoken: changeme\n")
    assert found(tmp_path) == set()


def test_passwords_in_addresses_and_what_a_runner_keeps_are_known(tmp_path: Path) -> None:
    write(tmp_path, ".env.local", "DATABASE_URL=postgres://shop:c0rrect%21horse@db.example/shop\n")
    assert found(tmp_path) >= {"c0rrect%21horse", "c0rrect!horse"}
    write(tmp_path, "temp/git-credentials-1f2e.config", f"[http]\n\textraheader = AUTHORIZATION: basic {BASIC}\n")
    assert found(tmp_path / "project", {"RUNNER_TEMP": str(tmp_path / "temp")}) == {BASIC, TOKEN}

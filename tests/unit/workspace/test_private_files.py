"""What of a folder without git stays behind: what may hold credentials, and what git itself would ignore."""

import os
import subprocess
from pathlib import Path

import pytest

from zelda_ci.workspace.copy import Ignored, is_private

KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1r\n"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"

PRIVATE = {
    ".env": "",
    ".env.local": "",
    ".env.production": "",
    ".env-staging": "",
    ".env~": "",
    ".envrc": "",
    "production.env": "",
    "server.key": "",
    "server.pem": KEY,
    "both.pem": CERTIFICATE + KEY,
    "id_rsa": "",
    "id_ed25519": "",
    "id_ed25519_work": "",
    "id_rsa.bak": "",
    "deploy": KEY,
    "release.p12": "",
    "app.keystore": "",
    "credentials": "",
    "credentials.json": "",
    ".credentials.yaml": "",
    "secrets.yml": "",
    "client_secret_1.apps.json": "",
    "my-service-account.json": "",
    "serviceAccount.json": "",
    "gcp.json": '{\n  "type": "service_account",\n  "private_key_id": "x"\n}',
    "config.json": '{"auths": {"ghcr.io": {"auth": "x"}}}',
    ".netrc": "",
    "_netrc": "",
    ".pypirc": "",
    ".git-credentials": "",
    ".pgpass": "",
    ".npmrc": "registry=https://r.example\n//r.example/:_authToken=abcdef123456\n",
    ".yarnrc.yml": "npmAuthToken: abcdef123456\n",
    "pip.conf": "[global]\nindex-url = https://me:secret@pypi.example/simple\n",
    "kubeconfig": "",
    "cluster.kubeconfig": "",
    "cluster.yaml": "users:\n- user:\n    client-key-data: x\n",
    "terraform.tfstate": "",
    "prod.tfvars": "",
}
PUBLIC = {
    ".env.example": "",
    ".env.sample": "",
    ".env.local.template": "",
    "example.env": "",
    ".npmrc": "registry=https://r.example\n//r.example/:_authToken=${NPM_TOKEN}\n",
    "ca.pem": CERTIFICATE,
    "id_rsa.pub": "",
    "id_generator.py": "",
    "credentials.py": KEY,
    "secrets.ts": "",
    "keys.md": "",
    "keyboard.json": "{}",
    "environment.yaml": "a: b\n",
    "config.json": '{"auth": "none"}',
    "LICENSE": "",
}


@pytest.mark.parametrize("name", PRIVATE)
def test_what_may_hold_credentials_is_private(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(PRIVATE[name])
    assert is_private(tmp_path / name, is_folder=False)


@pytest.mark.parametrize("name", PUBLIC)
def test_what_only_looks_like_it_is_not(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(PUBLIC[name])
    assert not is_private(tmp_path / name, is_folder=False)


def test_folders(tmp_path: Path) -> None:
    names = (".ssh", ".aws", ".env", ".envs", "secrets")
    assert [name for name in names if is_private(tmp_path / name, is_folder=True)] == [*names[:4]]


def test_nothing_is_followed_or_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    assert not is_private(tmp_path / "pipe", is_folder=False)
    assert not is_private(tmp_path / "link", is_folder=False)


LISTS = {
    ".gitignore": "*.log\n!keep.log\n/only-here\nbuild/\ndocs/**/*.tmp\n\\#odd\n!\n[\nspace\\ \n\xe9\n# *.txt\n",
    "sub/.gitignore": "!again.log\nonly-here\n*.txt\r\n/a/*\n!/a/b\n",
    "sub/a/.gitignore": "*\n!.gitignore\n",
}
FILES = [
    "x.log", "keep.log", "only-here", "build/x", "sub/build/x", "docs/a/b/x.tmp", "docs/x.tmp", "#odd", "a.txt",
    "space ", "é", "sub/again.log", "sub/x.log", "sub/only-here", "sub/deep/only-here", "sub/x.txt", "sub/a/b",
    "sub/a/c",
    "sub/notes.md", "other/only-here",
]  # fmt: skip


def test_what_git_ignores_is_what_git_says(tmp_path: Path) -> None:
    for name, text in {**LISTS, **dict.fromkeys(FILES, "")}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(text.encode())
    kept = set[str]()
    waiting = [(tmp_path, Ignored())]
    while waiting:
        here, above = waiting.pop()
        ignored = above.inside(here)
        for place in here.iterdir():
            if not ignored.names(place, is_folder=place.is_dir()):
                if place.is_dir():
                    waiting.append((place, ignored))
                else:
                    kept.add(place.relative_to(tmp_path).as_posix())
    environ = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, env=environ, check=True)
    command = ["git", "ls-files", "-z", "--others", "--exclude-standard"]
    told = subprocess.run(command, cwd=tmp_path, env=environ, check=True, capture_output=True).stdout
    assert kept == {name for name in told.decode().split("\0") if name}


def test_a_list_that_is_no_file_says_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".gitignore")
    assert not Ignored().inside(tmp_path).lists

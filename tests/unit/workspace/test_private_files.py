"""What of uncommitted files stays behind, since it may hold credentials."""

import os
import time
from pathlib import Path

import pytest

from zelda_ci.workspace.snapshot import is_private

KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1r\n"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"

PRIVATE_BY_NAME = (
    ".env", ".env.local", ".env.production", ".env-staging", ".env~", ".envrc", "production.env", "server.key",
    "id_rsa", "id_ed25519", "id_ed25519_work", "id_rsa.bak", "release.p12", "app.keystore", "credentials",
    "credentials.json", ".credentials.yaml", "secrets.yml", "client_secret_1.apps.json", "my-service-account.json",
    "serviceAccount.json", ".netrc", "_netrc", ".pypirc", ".git-credentials", ".pgpass", "kubeconfig",
    "cluster.kubeconfig", "terraform.tfstate", "prod.tfvars",
)  # fmt: skip
PRIVATE_BY_CONTENT = {
    "server.pem": KEY,
    "both.pem": CERTIFICATE + KEY,
    "deploy": KEY,
    "gcp.json": '{\n  "type": "service_account",\n  "private_key_id": "x"\n}',
    "config.json": '{"auths": {"ghcr.io": {"auth": "x"}}}',
    ".npmrc": "registry=https://r.example\n//r.example/:_authToken=abcdef123456\n",
    ".yarnrc.yml": "npmAuthToken: abcdef123456\n",
    "pip.conf": "[global]\nindex-url = https://me:secret@pypi.example/simple\n",
    "binary/.npmrc": os.fsdecode(b"\xff//r.example/:_authToken=abcdef123456\n"),
    "cluster.yaml": "users:\n- user:\n    client-key-data: x\n",
}
PUBLIC_BY_NAME = (
    ".env.example", ".env.sample", ".env.local.template", "example.env", "id_rsa.pub", "id_generator.py",
    "secrets.ts", "keys.md", "LICENSE",
)  # fmt: skip
PUBLIC_BY_CONTENT = {
    ".npmrc": "registry=https://r.example\n//r.example/:_authToken=${NPM_TOKEN}\n",
    "ca.pem": CERTIFICATE,
    "credentials.py": KEY,
    "keyboard.json": "{}",
    "environment.yaml": "a: b\n",
    "config.json": '{"auth": "none"}',
}


def private(folder: Path, files: dict[str, str]) -> set[str]:
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(os.fsencode(content))
    return {name for name in files if is_private(folder / name, is_folder=False)}


def test_what_may_hold_credentials_is_private(tmp_path: Path) -> None:
    assert private(tmp_path, dict.fromkeys(PRIVATE_BY_NAME, "")) == {*PRIVATE_BY_NAME}
    assert private(tmp_path, PRIVATE_BY_CONTENT) == PRIVATE_BY_CONTENT.keys()


def test_what_only_looks_like_it_is_not(tmp_path: Path) -> None:
    assert private(tmp_path, dict.fromkeys(PUBLIC_BY_NAME, "") | PUBLIC_BY_CONTENT) == set()


@pytest.mark.parametrize("part", [b"\n", b"registry", b"registry a://", b"registry://a:", b'"type"   '])
def test_no_text_takes_long(tmp_path: Path, part: bytes) -> None:
    (tmp_path / "a.json").write_bytes(part * 8192)
    began = time.process_time()
    assert not is_private(tmp_path / "a.json", is_folder=False)
    assert time.process_time() - began < 0.1


def test_folders(tmp_path: Path) -> None:
    names = (".ssh", ".aws", ".env", ".envs", "secrets")
    assert [name for name in names if is_private(tmp_path / name, is_folder=True)] == [*names[:4]]


def test_nothing_is_followed_or_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    assert not is_private(tmp_path / "pipe", is_folder=False)
    assert not is_private(tmp_path / "link", is_folder=False)

"""The base of a pull request comes over HTTP as from GitHub: with the token, and no more of it than is read."""

import base64
import os
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.patience import PATIENCE
from tests.support.projects import Project, folder, repository
from zelda_ci.ci.base import BaseSource
from zelda_ci.config import project as configuration
from zelda_ci.errors import ConfigError
from zelda_ci.redact import Secret

SUITE = "prompt: Go.\n"
TOKEN = "ghs_fakeTokenOfTheWorkflow"


class GitServer(BaseHTTPRequestHandler):
    """Git's own server behind HTTP, for whoever has the token."""

    top: Path
    sent: int

    def do_GET(self) -> None:
        wanted = "basic " + base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode()
        if self.headers.get("Authorization") != wanted:
            self.send_error(401)
            return
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        environ = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.top),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_GLOBAL": str(self.top / "gitconfig"),
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        done = subprocess.run(
            ["git", "http-backend"], input=body, env=environ, capture_output=True, timeout=PATIENCE, check=True
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        self.send_response(200)
        for line in head.decode().splitlines():
            name, _, value = line.partition(": ")
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        type(self).sent += len(content)

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *_: Any) -> None:
        """Nobody listens."""


@contextmanager
def served(top: Path) -> Iterator[str]:
    (top / "gitconfig").write_text("[safe]\n\tdirectory = *\n[uploadpack]\n\tallowFilter = true\n")
    GitServer.top, GitServer.sent = top, 0
    server = ThreadingHTTPServer(("127.0.0.1", 0), GitServer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def source(project: Project, url: str, token: str | None, base: str) -> BaseSource:
    secret = Secret(token) if token else None
    context = SimpleNamespace(workspace=project.path, server_url=url, repository="octo/shop")
    passed = {"GITHUB_TOKEN": secret} if secret else {}
    settings = SimpleNamespace(project=project.path, context=context, github_token=secret, credentials=passed)
    given, environ = {"decision": SimpleNamespace(base=base)}, {"PATH": os.environ["PATH"]}
    case: Any = SimpleNamespace(settings=settings, checkout=SimpleNamespace(nested=None), environ=environ, **given)
    return BaseSource(case, Path(tempfile.mkdtemp(dir=project.path.parent)))


def test_the_base_is_fetched_with_the_token_and_without_what_is_not_read(tmp_path: Path) -> None:
    large = {"large.bin": os.urandom(2_000_000)}
    files: dict[str, str | bytes] = {"zelda.config.yaml": "resultsDir: kept\n", "zelda/test-a.yaml": SUITE, **large}
    upstream = repository(tmp_path / "served", files)
    base = upstream.git("rev-parse", "HEAD")
    (tmp_path / "served/octo").mkdir()
    (tmp_path / "served/octo/shop").symlink_to(upstream.path / ".git")
    head = folder(tmp_path / "head")
    head.write({"zelda/test-a.yaml": SUITE})
    head.git("init", "-q")
    before = sorted(path for path in (head.path / ".git").rglob("*"))
    loaded = configuration.load(head.path)
    with served(tmp_path / "served") as url:
        found = source(head, url, TOKEN, base).settle(loaded)
        assert found.project.config.results_dir == "kept"
        assert found.gone == ()
        assert 0 < GitServer.sent < 100_000
        for token in (None, "ghs_fakeAndNobodys"):
            with pytest.raises(ConfigError, match="could not be read"):
                source(head, url, token, base).settle(loaded)
    assert sorted(path for path in (head.path / ".git").rglob("*")) == before

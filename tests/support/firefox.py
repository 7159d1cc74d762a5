"""Firefox as a reader has it: driven by Marionette, which every Firefox speaks on a port of loopback."""

import json
import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.patience import PATIENCE

# No port that another Firefox has, and no word to the network.
PREFERENCES = {"marionette.port": 0, "app.update.enabled": False, "network.connectivity-service.enabled": False}


@dataclass
class Firefox:
    """A session: a command is a line of JSON with its length before it, and so is the answer."""

    stream: Any
    number: int = 0

    def read(self) -> Any:
        """Return the next message."""
        length = b""
        while (character := self.stream.read(1)) != b":":
            assert character, "Firefox has gone"
            length += character
        return json.loads(self.stream.read(int(length)))

    def ask(self, command: str, **values: Any) -> Any:
        """Return what a command of WebDriver answers."""
        self.number += 1
        text = json.dumps([0, self.number, command, values]).encode()
        self.stream.write(b"%d:%s" % (len(text), text))
        self.stream.flush()
        _, _, error, answer = self.read()
        assert error is None, error
        return answer

    def go(self, file: Path, fragment: str = "") -> None:
        """Open a place of a report, as somebody who was sent a link."""
        self.ask("WebDriver:Navigate", url="about:blank")
        self.ask("WebDriver:Navigate", url=f"{file.as_uri()}#{fragment}")

    def run(self, script: str, *arguments: Any) -> Any:
        """Return what a function's body returns in the page."""
        return self.ask("WebDriver:ExecuteScript", script=script, args=list(arguments))["value"]


@contextmanager
def firefox(program: str, folder: Path) -> Iterator[Firefox]:
    """A browser of its own, with a fresh profile in a folder, which is also its home."""
    profile = folder / "profile"
    profile.mkdir(parents=True)
    lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in PREFERENCES.items()]
    (profile / "user.js").write_text("\n".join(lines))
    environment = os.environ | {"HOME": str(folder), "MOZ_HEADLESS": "1", "MOZ_CRASHREPORTER_DISABLE": "1"}
    command = [program, "--marionette", "--no-remote", "--profile", str(profile)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        with socket.create_connection(("127.0.0.1", _port(folder / "log", process)), timeout=PATIENCE) as connection:
            session = Firefox(connection.makefile("rwb"))
            session.read()
            session.ask("WebDriver:NewSession")
            yield session
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()
        process.wait()


def _port(log: Path, process: "subprocess.Popen[bytes]") -> int:
    deadline = time.monotonic() + PATIENCE
    while not (found := re.search(r"Listening on port (\d+)", log.read_text(errors="replace"))):
        assert process.poll() is None, log.read_text(errors="replace")
        assert time.monotonic() < deadline, log.read_text(errors="replace")
        time.sleep(0.1)
    return int(found[1])

"""What runs on the developer's machine and beyond it: daemons that can be knocked at, a process with secrets."""

import array
import ctypes
import os
import selectors
import socket
import threading
from collections import defaultdict
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.hostile.developer import Developer

IPC_PRIVATE, IPC_CREAT, IPC_RMID, IPC_SET = 0, 0o1000, 0, 1
SHM_BYTES = 4096


class Services:
    """Listeners that note what they are sent, a terminal, shared memory, and a process of the developer's."""

    def __init__(self, pathname: Path, developer: Developer, canaries: Mapping[str, str]) -> None:
        self._stack = ExitStack()
        self._heard: dict[str, bytes] = defaultdict(bytes)
        self._selector = selectors.DefaultSelector()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._pathname, self._developer, self._canaries = pathname, developer, canaries
        self.facts: dict[str, str] = {}

    def __enter__(self) -> Self:
        abstract = f"zw-{os.urandom(6).hex()}"
        service, attacker = self._inet("service"), self._inet("attacker")
        self._local("abstract", f"\0{abstract}")
        self._local("pathname", str(self._pathname))
        shared = self._shared_memory()
        secret = {"DEPLOY_TOKEN": self._canaries["procenv"]}
        argv = ["sh", "-c", "sleep 600; true", self._canaries["argv"]]
        self.process = self._stack.enter_context(self._developer.process(argv, secret))
        self.facts |= {
            "socket": str(self._pathname),
            "abstract": abstract,
            "service": str(service),
            "attacker": str(attacker),
            "udp": str(self._datagrams()),
            "terminal": self._terminal(),
            "shm": str(shared),
            "process": str(self.process),
        }
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()
        self._stack.close()
        self._selector.close()

    def received(self, name: str) -> bytes:
        return self._heard[name]

    def _inet(self, name: str) -> int:
        listener = self._stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        self._selector.register(listener, selectors.EVENT_READ, name)
        port: int = listener.getsockname()[1]
        return port

    def _local(self, name: str, address: str) -> None:
        listener = self._stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(address)
        listener.listen()
        self._selector.register(listener, selectors.EVENT_READ, name)

    def _datagrams(self) -> int:
        receiver = self._stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        receiver.bind(("127.0.0.1", 0))
        self._selector.register(receiver, selectors.EVENT_READ, "udp")
        port: int = receiver.getsockname()[1]
        return port

    def _terminal(self) -> str:
        """Path of a terminal that belongs to the developer."""
        ours, theirs = os.openpty()
        self._stack.callback(os.close, ours)
        self._stack.callback(os.close, theirs)
        path = os.ttyname(theirs)
        if os.geteuid() == 0:
            os.chown(path, self._developer.uid, -1)
        os.set_blocking(ours, False)
        self._selector.register(ours, selectors.EVENT_READ, "terminal")
        return path

    def _shared_memory(self) -> int:
        """Id of a System V segment that only the developer may read."""
        libc = ctypes.CDLL(None, use_errno=True)
        libc.shmat.restype = ctypes.c_void_p
        segment: int = libc.shmget(IPC_PRIVATE, SHM_BYTES, IPC_CREAT | 0o600)
        address = libc.shmat(segment, None, 0)
        ctypes.memmove(address, self._canaries["shm"].encode(), len(self._canaries["shm"]))
        libc.shmdt(ctypes.c_void_p(address))
        if os.geteuid() == 0:
            # struct shmid_ds begins with: key, uid, gid, cuid, cgid, mode.
            owner = array.array("I", [0, self._developer.uid, self._developer.gid, 0, 0, 0o600, *[0] * 32])
            libc.shmctl(segment, IPC_SET, (ctypes.c_uint * len(owner))(*owner))
        self._stack.callback(libc.shmctl, segment, IPC_RMID, None)
        return segment

    def _listen(self) -> None:
        while not self._done.is_set():
            for key, _ in self._selector.select(0.05):
                self._take(key)
        with suppress(OSError):
            for key, _ in self._selector.select(0):
                self._take(key)

    def _take(self, key: selectors.SelectorKey) -> None:
        with suppress(OSError):
            if isinstance(key.fileobj, int):
                self._heard[key.data] += os.read(key.fileobj, 65536)
            elif isinstance(key.fileobj, socket.socket) and key.fileobj.type == socket.SOCK_DGRAM:
                self._heard[key.data] += key.fileobj.recv(65536)
            elif isinstance(key.fileobj, socket.socket):
                self._accept(key.fileobj, key.data)

    def _accept(self, listener: socket.socket, name: str) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(1)
            with suppress(OSError):
                self._heard[name] += connection.recv(65536)
                connection.sendall(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")

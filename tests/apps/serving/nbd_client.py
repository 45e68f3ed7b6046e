"""A client of the NBD protocol that knows nothing of the server's code: its numbers are those of the protocol's text."""

from __future__ import annotations

import socket
import struct
from pathlib import Path

from tests.yardstick import seconds

FIXED_NEWSTYLE, NO_ZEROES = 1, 2
EXPORT_NAME, ABORT, LIST, STARTTLS, INFO, GO, STRUCTURED_REPLY, SET_META_CONTEXT = 1, 2, 3, 5, 6, 7, 8, 10
READ, WRITE, DISCONNECT, FLUSH, TRIM, CACHE, WRITE_ZEROES = range(7)
FUA, NO_HOLE = 1, 2
PERMISSION, IO, INVALID, NO_SPACE = 1, 5, 22, 28


def hello(flags: int = FIXED_NEWSTYLE | NO_ZEROES) -> bytes:
    return struct.pack(">I", flags)


def option(number: int, data: bytes = b"") -> bytes:
    return b"IHAVEOPT" + struct.pack(">II", number, len(data)) + data


def go(name: str = "", infos: tuple[int, ...] = (), number: int = GO) -> bytes:
    encoded = name.encode()
    return option(number, struct.pack(">I", len(encoded)) + encoded + struct.pack(f">H{len(infos)}H", len(infos), *infos))


def request(command: int, offset: int = 0, length: int = 0, *, cookie: int = 0, flags: int = 0, data: bytes = b"") -> bytes:
    return struct.pack(">IHHQQI", 0x25609513, flags, command, cookie, offset, length or len(data)) + data


def option_replies(data: bytes) -> list[tuple[int, int, bytes]]:
    """(option, kind, data) of what a server says to options."""
    found = []
    while data:
        magic, number, kind, length = struct.unpack_from(">QIII", data)
        assert magic == 0x0003E889045565A9
        found.append((number, kind, data[20 : 20 + length]))
        data = data[20 + length :]
    return found


class Client:
    """Blocking, one request at a time unless `send` is used."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(seconds(20))
        self.socket.connect(str(path))
        assert self.receive(18) == b"NBDMAGICIHAVEOPT" + struct.pack(">H", FIXED_NEWSTYLE | NO_ZEROES)

    def choose(self) -> tuple[int, int]:
        """Choose the export in the old way; its size and flags."""
        self.socket.sendall(hello() + option(EXPORT_NAME))
        size, flags = struct.unpack(">QH", self.receive(10))
        return size, flags

    def receive(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    def send(self, *messages: bytes) -> None:
        self.socket.sendall(b"".join(messages))

    def reply(self) -> tuple[int, int]:
        """Error and cookie of the next reply."""
        magic, error, cookie = struct.unpack(">IIQ", self.receive(16))
        assert magic == 0x67446698
        return error, cookie

    def ask(self, message: bytes) -> int:
        self.send(message)
        return self.reply()[0]

    def read(self, offset: int, length: int) -> bytes:
        assert self.ask(request(READ, offset, length)) == 0
        return self.receive(length)

    def close(self) -> None:
        self.socket.close()

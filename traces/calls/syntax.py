"""Arguments as ``strace`` writes them: descriptors with their paths, strings in hexadecimal, structures, and numbers."""

from __future__ import annotations

import re
from typing import NamedTuple

from traces.calls import schema

_BYTE = re.compile(r"\\u(dc[89a-f][0-9a-f])")
_DESCRIPTOR = re.compile(r"(-?\d+|AT_FDCWD)(?:<((?:\\x[0-9a-f]{2})*)>)?(\(deleted\))?")
STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?')
MODES = {
    **{"O_DIRECT": schema.DIRECT, "O_SYNC": schema.SYNC, "O_DSYNC": schema.DSYNC, "O_APPEND": schema.APPEND},
    **{"O_CREAT": schema.CREATE, "O_TRUNC": schema.TRUNCATE, "O_EXCL": schema.EXCLUSIVE},
}
_KINDS = (
    (re.compile(r"/dev/(pts|tty|ptmx|console)"), "terminal"),
    (re.compile(r"/dev/shm/[^/]+$|/memfd:"), "memory"),  # shm_open; folders below hold files
    (re.compile(r"/dev/(?!shm/)"), "device"),
    (re.compile(r"/(proc|sys)/"), "kernel"),
    (re.compile(r"/"), "file"),
    (re.compile(r"(pipe|socket):"), ""),
)


class Descriptor(NamedTuple):
    """A descriptor in a call: its number, and the path of what it stands for."""

    number: int
    path: str
    deleted: bool = False


def unhex(text: str) -> bytes:
    r"""The bytes of ``\x61\x62``."""
    return bytes.fromhex(text.replace("\\x", ""))


def hexadecimal(text: str | bytes) -> str:
    r"""A text, or bytes, as ``strace`` writes them, such as ``\x61\x62``."""
    return "".join(f"\\x{byte:02x}" for byte in (text.encode() if isinstance(text, str) else text))


def path_of(text: str) -> str:
    return escape(unhex(text).decode(errors="surrogateescape"))


def escape(path: str) -> str:
    r"""The system's path as a recording has it, in which a byte that is not UTF-8 is six letters, such as ``\udcff``."""
    return path.encode("utf-8", "backslashreplace").decode()


def unescape(path: str) -> str:
    r"""The system's path that a recording has.

    Examples
    --------
    >>> unescape(r"/tmp/a\udcff").encode(errors="surrogateescape")
    b'/tmp/a\xff'
    """
    return _BYTE.sub(lambda match: chr(int(match[1], 16)), path)


def kind_of(path: str) -> str:
    """Kind of what a path as ``strace -y`` tells it stands for: file, pipe, socket, ...

    Examples
    --------
    >>> [kind_of(path) for path in ("/tmp/a", "pipe:[7]", "/dev/pts/0", "anon_inode:[eventfd]")]
    ['file', 'pipe', 'terminal', 'other']
    """
    for pattern, kind in _KINDS:
        if match := pattern.match(path):
            return kind or match[1]
    return "other"


def arguments_of(text: str) -> list[str]:
    """Arguments of a call, of which structures and lists stay whole.

    Examples
    --------
    >>> arguments_of("3, [{a=1, b=2}, 4], 5")
    ['3', '[{a=1, b=2}, 4]', '5']
    """
    parts, depth, begin = [], 0, 0
    for place, letter in enumerate(text):
        if letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[begin:place].strip())
            begin = place + 1
    return [*parts, text[begin:].strip()] if text[begin:].strip() else parts


def descriptor_of(text: str) -> Descriptor:
    """A descriptor, such as ``3<...>(deleted)`` with the path in hexadecimal."""
    match = _DESCRIPTOR.match(text)
    if match is None:
        return Descriptor(-1, "")
    return Descriptor(-100 if match[1] == "AT_FDCWD" else int(match[1]), path_of(match[2] or ""), bool(match[3]))


def string_of(text: str) -> str | None:
    """The path that a quoted string says; None for what is no string."""
    match = STRING.match(text)
    return path_of(match[1]) if match else None


def integer_of(text: str) -> int | None:
    """A number, decimal or hexadecimal; None for what is none."""
    try:
        return int(text.split(" ")[0], 0)
    except ValueError:
        return None


def normal(path: str) -> str:
    """A path without ``.`` and ``..``.

    Examples
    --------
    >>> normal("/tmp/./a/../b")
    '/tmp/b'
    """
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


def flags_of(words: str) -> int:
    """Flags of an open file, bits of `traces.calls.schema.FLAGS`, such as of ``O_RDWR|O_CREAT``."""
    return sum(bit for word, bit in MODES.items() if re.search(rf"\b{word}\b", words))

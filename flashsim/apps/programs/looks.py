"""Which files a check looks at: ``strace`` watches it once."""

import os
import re
import shlex
from pathlib import Path

from traces.calls.strace import OPTIONS
from traces.calls.syntax import unhex

_HEX = r"(?:\\x[0-9a-f]{2})*"
#: A name in a call, with the folder that it begins in, if a descriptor says that; and what a descriptor stands for.
_NAME = re.compile(rf'(?:<({_HEX})>, )?"({_HEX})"')
_DESCRIPTOR = re.compile(rf"<({_HEX})>")


def watched(check: str, log: Path) -> str:
    """A shell command that runs a check, with the check's exit code, and writes its calls that name files."""
    strace = ["strace", "-D", *OPTIONS, "-qq", "--seccomp-bpf", "-e", "trace=%file", "-o", str(log)]
    return shlex.join([*strace, "--", "sh", "-c", check])


def looked_at(log: Path, folder: Path) -> set[str]:
    """Paths within a folder that a check named or opened, there or not; names that it listed are none, since Python lists where it runs."""
    named, root = set[str](), os.fsencode(os.path.realpath(folder))
    with log.open(encoding="ascii", errors="replace") as lines:
        for line in lines:
            names = _NAME.findall(line)[: 1 if "execve" in line else None]  # a program's arguments are no names yet
            paths = [unhex(text) for text in _DESCRIPTOR.findall(line)]
            paths += [os.path.join(root, unhex(place), unhex(name)) for place, name in names]
            below = (path for path in map(os.path.normpath, paths) if path.startswith(os.path.join(root, b"")))
            named.update(os.fsdecode(os.path.relpath(path, root)) for path in below)
    return named

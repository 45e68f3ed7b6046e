"""Joins of first steps: plain Python answers them in seconds, while a second process compiles their kernels for the next run.

Which joins these are is measured: these algorithms take plain Python 2 to 6 s for relations of this source up to this scale, with this
much memory, and compiling takes 10 s. With less memory a join makes more requests; other algorithms take up to 40 s.
"""

import fcntl
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress

from flashsim.core.processes import python_command
from flashsim.core.source_files import kernels_folder, make_private
from flashsim.core.units import MIB, parse_size

_ALGORITHMS, _LEAST_MEMORY = ("grace-hash", "hybrid-hash", "simple-hash"), MIB
_SOURCE, _LARGEST_SCALE = re.compile(r"(do2009:\w+)@(\d*\.?\d+)"), 0.1
#: The join that is compiled in the background: it calls the same kernels.
_SCALE, _MEMORY = "0.01", "128KiB"
_OPTIONS = {"--r", "--s", "--on", "--device", "--memory"}
_LOCK = "first.lock"


def is_first_join(algorithm: str, options: Mapping[str, str]) -> bool:
    """Whether a join is one of first steps; other options may name files that a second process must not write."""
    sources = [_SOURCE.fullmatch(options.get(option, "")) for option in ("--r", "--s")]
    if algorithm not in _ALGORITHMS or options.keys() != _OPTIONS:
        return False
    with suppress(ValueError):
        return all(source and float(source[2]) <= _LARGEST_SCALE for source in sources) and parse_size(options["--memory"]) >= _LEAST_MEMORY
    return False


def is_compiling() -> bool:
    """Whether a process that `compile_in_background` started is still at work."""
    with suppress(FileNotFoundError), (kernels_folder() / _LOCK).open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def compile_in_background(algorithm: str, options: Mapping[str, str]) -> None:
    """Start a process of low priority that compiles what a join calls, unless one is at work; it outlives this one by some 10 s."""
    smaller = {option: _SOURCE.sub(rf"\1@{_SCALE}", options[option]) for option in ("--r", "--s")} | {"--memory": _MEMORY}
    small = {**options, **smaller}
    words = [word for pair in small.items() for word in pair]
    with suppress(OSError):
        make_private(kernels_folder())
        with (kernels_folder() / _LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            subprocess.Popen(
                ["nice", *python_command("flashsim.__main__:main", "join", algorithm, *words)],
                env=os.environ | {"NUMBA_DISABLE_JIT": "0"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[lock.fileno()],
                start_new_session=True,
            )
            print("flashsim: kernels are compiled in the background, for the next run", file=sys.stderr)

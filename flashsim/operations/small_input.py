"""Commands whose input is so small that plain Python answers before kernels would be compiled."""

import fcntl
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise

from flashsim.core.errors import RefusedError
from flashsim.core.source_files import kernels_folder, make_private
from flashsim.core.units import MIB, parse_size

#: The largest generated table, as a scale, and the largest file: joins of these take plain Python up to 2 s, compiling takes 10.
_SCALE, _BYTES = 0.01, 256 << 10
_GENERATED = re.compile(r"(\w[\w-]*):\w+@(\d*\.?\d+)")
#: Joins of first steps: these algorithms take plain Python 2 to 6 s for relations of this source up to this scale, with this much memory.
_FIRST_JOINS, _FIRST_SOURCE, _FIRST_SCALE, _FIRST_MEMORY = ("grace-hash", "hybrid-hash", "simple-hash"), "do2009", 0.1, MIB
_LOCK = "first.lock"
_START = "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); from flashsim.__main__ import main; main()"
_FIRST_OPTIONS = {"--r", "--s", "--on", "--device", "--memory"}
#: What every run on a simulated drive loads.
_ENGINES = "*/flashsim.*.engine.drive.advance-*"


def leave_uncompiled(arguments: Sequence[str]) -> None:
    """Let no kernel be compiled, in this process and those that it starts, if a command's input is small and no engine is kept.

    The first steps' join, which people repeat, is compiled by a process of its own meanwhile, which outlives this one by some 10 s.
    It must be called before Numba is imported.
    """
    command = arguments[0] if arguments else ""
    if command not in ("lab", "join") or "NUMBA_DISABLE_JIT" in os.environ:
        return
    with suppress(RefusedError):  # by the environment, which the command says itself
        if command == "lab":
            os.environ["NUMBA_DISABLE_JIT"] = "1"
            return
        options = _options(arguments)
        sources = [value for option, value in options if option in ("--r", "--s")]
        small = len(sources) == 2 and all(map(_is_small, sources))
        first = not small and len(sources) == 2 and arguments[1] in _FIRST_JOINS and _is_first(options, sources)
        kept = any(kernels_folder().glob(_ENGINES))
        if first and not kept:
            _compile_behind(["join", arguments[1], *(part for pair in options if pair[0] != "--memory" for part in pair)])
        elif first:  # a few kernels may be missing still
            kept = not _is_compiled_behind()
        if (small or first) and not kept:
            os.environ["NUMBA_DISABLE_JIT"] = "1"


def _options(arguments: Sequence[str]) -> list[tuple[str, str]]:
    words = [part for word in arguments for part in (word.split("=", 1) if word.startswith("--") else [word])]
    return [(option, value) for option, value in pairwise(words) if option.startswith("--")]


def _is_small(source: str) -> bool:
    if generated := _GENERATED.fullmatch(source):
        return float(generated[2]) <= _SCALE
    return os.path.isfile(source) and os.path.getsize(source) <= _BYTES  # `Path.is_file` raises where a name is too long


def _is_first(options: Sequence[tuple[str, str]], sources: Sequence[str]) -> bool:
    matches = [_GENERATED.fullmatch(source) for source in sources]
    if not all(match and match[1] == _FIRST_SOURCE and float(match[2]) <= _FIRST_SCALE for match in matches):
        return False
    with suppress(ValueError):
        return dict(options).keys() == _FIRST_OPTIONS and parse_size(dict(options)["--memory"]) >= _FIRST_MEMORY
    return False


def _is_compiled_behind() -> bool:
    """True while a process of `_compile_behind` works."""
    with suppress(FileNotFoundError), (kernels_folder() / _LOCK).open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _compile_behind(arguments: Sequence[str]) -> None:
    """Have a process of low priority compile what a join calls, by the same join of small relations, unless one does already."""
    with suppress(OSError):
        make_private(kernels_folder())
        with (kernels_folder() / _LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            small = [re.sub(rf"^({_FIRST_SOURCE}:\w+@).*", r"\g<1>0.01", word) for word in arguments]
            subprocess.Popen(
                ["nice", sys.executable, "-c", _START, json.dumps(sys.path), *small, "--memory", "128KiB"],
                env=os.environ | {"NUMBA_DISABLE_JIT": "0"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[lock.fileno()],
                start_new_session=True,
            )
            print("flashsim: kernels are compiled in the background, for the next run", file=sys.stderr)

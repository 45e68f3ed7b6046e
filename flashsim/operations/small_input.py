"""Commands whose input is so small that plain Python answers before kernels would be compiled."""

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise

from flashsim.core.errors import RefusedError
from flashsim.core.source_files import kernels_folder

#: The largest generated table, as a scale, and the largest file: joins of these take plain Python up to 5 s, compiling takes 10.
_SCALE, _BYTES = 0.01, 256 << 10
_GENERATED = re.compile(r"\w[\w-]*:\w+@(\d*\.?\d+)")
#: What every run on a simulated drive loads.
_ENGINES = "*/flashsim.*.engine.drive.advance-*"


def leave_uncompiled(arguments: Sequence[str]) -> None:
    """Let no kernel be compiled, in this process and those that it starts, if a command's input is small and no engine is kept.

    It must be called before Numba is imported.
    """
    command = arguments[0] if arguments else ""
    with suppress(RefusedError):  # by the environment, which the command says itself
        if command == "lab" or (command == "join" and _is_small_join(arguments) and not any(kernels_folder().glob(_ENGINES))):
            os.environ.setdefault("NUMBA_DISABLE_JIT", "1")


def _is_small_join(arguments: Sequence[str]) -> bool:
    words = [part for word in arguments for part in (word.split("=", 1) if word.startswith("--") else [word])]
    sources = [value for option, value in pairwise(words) if option in ("--r", "--s")]
    return len(sources) == 2 and all(map(_is_small, sources))


def _is_small(source: str) -> bool:
    if generated := _GENERATED.fullmatch(source):
        return float(generated[1]) <= _SCALE
    return os.path.isfile(source) and os.path.getsize(source) <= _BYTES  # `Path.is_file` raises where a name is too long

"""Commands whose input is so small that plain Python answers before kernels would be compiled."""

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise

from flashsim.core.errors import RefusedError
from flashsim.core.source_files import kernels_folder
from flashsim.operations.first_joins import compile_in_background, is_compiling, is_first_join

#: The largest generated table, as a scale, and the largest file: joins of these take plain Python up to 2 s, compiling takes 10.
_SCALE, _BYTES = 0.01, 256 << 10
_GENERATED = re.compile(r"\w[\w-]*:\w+@(\d*\.?\d+)")
#: What every run on a simulated drive loads.
_ENGINES = "*/flashsim.*.engine.drive.advance-*"


def leave_uncompiled(arguments: Sequence[str]) -> None:
    """Let no kernel be compiled, in this process and those that it starts, if a command's input is small and no engine is kept.

    It must be called before Numba is imported.
    """
    command = arguments[0] if arguments else ""
    if "NUMBA_DISABLE_JIT" not in os.environ and (command == "lab" or (command == "join" and _answers_uncompiled(arguments[1:]))):
        os.environ["NUMBA_DISABLE_JIT"] = "1"


def _answers_uncompiled(arguments: Sequence[str]) -> bool:
    """Whether a join runs in plain Python; one of first steps has its kernels compiled in the background."""
    words = [part for word in arguments for part in (word.split("=", 1) if word.startswith("--") else [word])]
    pairs = [(option, value) for option, value in pairwise(words) if option.startswith("--")]
    sources = [value for option, value in pairs if option in ("--r", "--s")]
    with suppress(RefusedError):  # of a folder for kernels that the environment names and that cannot be: the command says so itself
        is_kept = any(kernels_folder().glob(_ENGINES))
        if len(sources) == 2 and all(map(_is_small, sources)):
            return not is_kept
        if arguments and is_first_join(arguments[0], dict(pairs)):
            if not is_kept:
                compile_in_background(arguments[0], dict(pairs))
            return not is_kept or is_compiling()
    return False


def _is_small(source: str) -> bool:
    if generated := _GENERATED.fullmatch(source):
        return float(generated[1]) <= _SCALE
    return os.path.isfile(source) and os.path.getsize(source) <= _BYTES  # `Path.is_file` raises where a name is too long

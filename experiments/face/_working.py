"""Work under way: its progress where a terminal shows it, and refusals in Python's words rather than the command line's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from experiments.commands.progress import progress_bar
from flashsim.core.errors import FlashsimError
from flashsim.core.protocols import Progress

#: Options of commands whose arguments here have another name, or a value.
_ARGUMENTS = {"precondition": "state", "scale-offsets": "wrap=True", "allow-write": "allow_write=True", "force": "force=True"}


@contextmanager
def working(what: str) -> Iterator[Progress | None]:
    """A callable to be told how far the work has come; None where no terminal shows it."""
    try:
        with progress_bar(what) as progress:
            yield progress
    except FlashsimError as problem:
        problem.args = (in_python(str(problem)), *problem.args[1:])
        raise


def in_python(message: str) -> str:
    """A message that names options of commands, with arguments in their place.

    Examples
    --------
    >>> in_python("device: writing would destroy 1 MiB in a.bin; allow it with --allow-write")
    'device: writing would destroy 1 MiB in a.bin; allow it with allow_write=True'
    """
    return re.sub(r"--([a-z][a-z-]*)", lambda found: _ARGUMENTS.get(found[1], found[1].replace("-", "_")), message)

"""Work under way: its progress where a terminal shows it, and refusals in Python's words rather than the command line's."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from experiments.commands.progress import progress_bar
from flashsim.core.activity import activity, show_by
from flashsim.core.errors import FlashsimError
from flashsim.core.protocols import Progress

#: Options of commands whose arguments here have another name, or a value.
_ARGUMENTS = {"precondition": "state", "wrap": "wrap=True", "allow-write": "allow_write=True", "force": "force=True"}
#: Seconds between two changes of a notebook's line.
_OFTEN = 0.5


@contextmanager
def working(what: str) -> Iterator[Progress | None]:
    """A callable to be told how far the work has come; None where neither a terminal nor a notebook shows it."""
    try:
        with activity(what) as progress:
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


@contextmanager
def _in_notebook(what: str) -> Iterator[Progress]:
    """A line below the cell while it works, which is gone afterwards."""
    shown_by: Any = import_module("IPython.display")  # there is one where a notebook is
    line = shown_by.display(shown_by.Pretty(f"{what} ..."), display_id=True)
    shown = time.monotonic()

    def tell(done: float, total: float, message: str = "") -> None:
        nonlocal shown
        if time.monotonic() - shown >= _OFTEN:
            shown = time.monotonic()
            line.update(shown_by.Pretty(f"{what}: {done:,.0f} of {total:,.0f} {message}"))

    try:
        yield tell
    finally:
        line.update(shown_by.Pretty(""))


def is_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


show_by(_in_notebook if is_notebook() else progress_bar)

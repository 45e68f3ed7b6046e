"""Progress of work under way: below a notebook's cell, or on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from flashsim.core.activity import show_by
from flashsim.core.protocols import Progress
from flashsim.studies.presentation.progress import progress_bar

#: Seconds between two changes of a notebook's line.
_OFTEN = 0.5


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

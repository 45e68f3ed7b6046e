"""Announcements of long activities, which are shown by whoever can: the command line, a notebook, or a line on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # whoever only shows activities needs none of what requests are made of
    from flashsim.core.protocols import Progress

#: Shows one activity while it lasts; is handed what is being done, in words.
Display = Callable[[str], AbstractContextManager["Progress"]]


@contextmanager
def activity(what: str) -> Iterator[Progress]:
    """Say that something takes a while; what is yielded is to be told how far it has come."""
    with (_workers or _display)(what) as progress:
        yield progress


def show_by(display: Display) -> None:
    """Let activities be shown by something else from now on."""
    global _display
    _display = display


def show_workers_by(display: Display) -> None:
    """Let activities of this process, which works for another one, be shown by something else, whoever else would show them."""
    global _workers
    _workers = display


def report_share(share: float) -> None:
    """Say which share of one run, of several that are made at the same time, is done."""
    _take_share(share)


def show_shares_by(take: Callable[[float], object]) -> Callable[[float], object]:
    """Let a function take shares of runs from now on; the one that took them before."""
    global _take_share
    before, _take_share = _take_share, take
    return before


@contextmanager
def _plainly(what: str) -> Iterator[Progress]:
    print(f"flashsim: {what}", file=sys.stderr, flush=True)
    yield lambda done, total, message="": None


_display: Display = _plainly
_workers: Display | None = None
_take_share: Callable[[float], object] = float

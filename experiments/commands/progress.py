"""Progress bars on stderr, on a terminal only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from flashsim.core import protocols


@contextmanager
def progress_bar(what: str) -> Iterator[protocols.Progress | None]:
    """A callable to be told how far the work has come; None where no terminal shows it."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    text = TextColumn("{task.description}"), TextColumn("{task.fields[message]}")
    columns = (text[0], BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), text[1])
    with Progress(*columns, console=console, transient=True) as bars:
        task = bars.add_task(what, total=None, message="")

        def tell(done: float, total: float, message: str = "") -> None:
            bars.update(task, completed=done, total=total, message=message)

        yield tell

"""Progress of activities, on stderr: on a terminal a line that vanishes again, elsewhere a line now and then."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from flashsim.core.activity import show_by
from flashsim.core.errors import printable

if TYPE_CHECKING:  # which loads NumPy
    from flashsim.core import protocols

#: Seconds: from when on a terminal shows an activity, and how often anew.
_SHOWN_AFTER, _REDRAWN = 1.0, 0.2
#: Seconds between two changes of a notebook's line.
_NOTEBOOK_REDRAWN = 0.5
#: Columns of a terminal from which on a bar leaves room for words.
_ROOM_FOR_A_BAR = 100
#: Seconds that an activity has lasted and its share that is done before the time that is left is estimated.
_ESTIMATED_AFTER, _LEAST_SHARE = 2.0, 0.02
#: The same where nobody watches, as in a file.
_NOTED_AFTER, _NOTED_AGAIN = 5.0, 30.0


@dataclass
class _Activity:
    what: str
    began: float
    count: float = 0.0
    total: float | None = None
    message: str = ""

    def tell(self, done: float, total: float, message: str = "") -> None:
        self.count, self.total, self.message = done, total, printable(message)

    @property
    def share(self) -> str:
        """The progress in words: counts, or a share of 1; empty before there is one."""
        if not self.total:
            return ""
        if self.total == 1:
            return f"{self.count:.0%}" if self.count >= 0.005 else ""
        return f"{self.count:,.0f}/{self.total:,.0f}"

    def estimate(self, now: float) -> str:
        """The time that the rest takes at the rate so far, in words; empty where that is too early to say."""
        elapsed = now - self.began
        if not self.total or elapsed < _ESTIMATED_AFTER or not _LEAST_SHARE <= self.count / self.total < 1:
            return ""
        seconds = elapsed * (self.total / self.count - 1)
        return f"about {seconds:.0f} s left" if seconds < 100 else f"about {seconds / 60:.0f} min left"


class Screen:
    """Shows the innermost of the activities that are under way, from a thread of its own."""

    def __init__(self) -> None:
        self._activities: list[_Activity] = []
        self._lock = threading.RLock()
        self._changed = threading.Event()
        self._thread: threading.Thread | None = None
        self._bars: Any = None
        self._drawn: tuple[_Activity, Any] | None = None
        self._quiet_since = self._note_time = 0.0

    @contextmanager
    def show(self, what: str) -> Iterator[protocols.Progress]:
        """Show an activity while it lasts; yield the function that takes its progress."""
        activity = _Activity(printable(what), time.monotonic())
        with self._lock:
            if not self._activities:
                self._quiet_since = activity.began
            self._activities.append(activity)
            if self._thread is None:
                self._changed.clear()
                self._thread = threading.Thread(target=self._watch, daemon=True)
                self._thread.start()
        try:
            yield activity.tell
        finally:
            with self._lock:
                self._activities.remove(activity)
                if not self._activities:
                    self.clear()
                    self._thread = None
                    self._changed.set()

    @contextmanager
    def around(self, what: str) -> Iterator[None]:
        """Show what else is going on wherever no activity is announced; what others write meanwhile takes the line's place."""
        streams = [(stream, stream.write) for stream in (sys.stdout, sys.stderr) if stream is not None and stream.isatty()]
        if sys.stderr is None or not sys.stderr.isatty():
            yield
            return
        for stream, write in streams:
            stream.write = partial(self._write_below, write)  # type: ignore[method-assign]
        try:
            with self.show(what):
                yield
        finally:
            for stream, _ in streams:
                del stream.write

    def _write_below(self, write: Any, text: str) -> Any:
        with self._lock:
            self.clear()
            self._quiet_since = time.monotonic()
            return write(text)

    def clear(self) -> None:
        """Take the line away, until something has lasted a while again."""
        with self._lock:
            if self._bars is not None:
                self._bars.stop()
                self._bars = self._drawn = None

    def _watch(self) -> None:
        thread = threading.current_thread()
        while not self._changed.wait(_REDRAWN):
            with self._lock:
                if self._thread is not thread or not self._activities:
                    return
                with suppress(OSError, ValueError):  # nobody is there any more
                    self._draw(self._activities[-1], time.monotonic())

    def _draw(self, activity: _Activity, now: float) -> None:
        if sys.stderr is not None and sys.stderr.isatty():
            if now - self._quiet_since >= _SHOWN_AFTER:
                self._draw_line(activity)
        elif now - activity.began >= _NOTED_AFTER and now - max(self._note_time, activity.began) >= (
            _NOTED_AGAIN if self._note_time > activity.began else _NOTED_AFTER
        ):
            self._note_time = now
            message = "" if activity.message == activity.what else activity.message
            about = ", ".join(filter(None, (activity.share, message, f"{now - activity.began:.0f} s", self._activities[0].estimate(now))))
            print(f"flashsim: {activity.what} ({about})", file=sys.stderr, flush=True)

    def _draw_line(self, activity: _Activity) -> None:
        if self._bars is None:
            self._bars = _bars()
            self._bars.start()
        if self._drawn is None or self._drawn[0] is not activity:
            if self._drawn is not None:
                self._bars.remove_task(self._drawn[1])
            shares = [outer.share for outer in self._activities if outer.share and outer is not activity]
            self._drawn = activity, self._bars.add_task(" ".join([*shares, activity.what]), total=None, share="", message="", estimate="")
        counts = {"completed": activity.count, "total": activity.total, "share": activity.share, "message": activity.message}
        self._bars.update(self._drawn[1], **counts, estimate=self._activities[0].estimate(time.monotonic()))
        self._bars.refresh()


def _bars() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    texts = [
        TextColumn(f"{{task.{part}}}", markup=False) for part in ("description", "fields[share]", "fields[estimate]", "fields[message]")
    ]
    stream = os.fdopen(os.dup(sys.stderr.fileno()), "w")
    console = Console(file=stream, force_terminal=True)
    bar = [BarColumn(bar_width=20)] if console.width >= _ROOM_FOR_A_BAR else []
    columns = (texts[0], *bar, texts[1], TimeElapsedColumn(), *texts[2:])
    return Progress(*columns, console=console, transient=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)


@contextmanager
def _in_notebook(what: str) -> Iterator[protocols.Progress]:
    """Progress as a line below the cell while it works, which is gone afterwards."""
    shown_by: Any = import_module("IPython.display")  # there is one where a notebook is
    line = shown_by.display(shown_by.Pretty(f"{what} ..."), display_id=True)
    last = time.monotonic()

    def tell(done: float, total: float, message: str = "") -> None:
        nonlocal last
        if time.monotonic() - last >= _NOTEBOOK_REDRAWN:
            last = time.monotonic()
            line.update(shown_by.Pretty(f"{what}: {done:,.0f} of {total:,.0f} {message}"))

    try:
        yield tell
    finally:
        line.update(shown_by.Pretty(""))


screen = Screen()


def show_here() -> None:
    """Let activities be shown below the cell of a notebook, if this is one, and otherwise on stderr."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    show_by(screen.show if getattr(shell, "kernel", None) is None else _in_notebook)


show_here()

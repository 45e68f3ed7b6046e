"""What workers say of their progress, heard by the process that started them."""

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from flashsim.core.activity import show_workers_by
from flashsim.core.protocols import Progress

#: Seconds between two messages of a worker, and for how long each is shown where there are several.
_OFTEN, _SHOWN = 0.5, 2.0


@contextmanager
def heard(tell: Callable[[str], None]) -> Iterator[str]:
    """A folder where workers leave what they do; `tell` is handed it from a thread, one worker after the other."""
    ended = threading.Event()

    def listen() -> None:
        while not ended.wait(_OFTEN):
            said = [text for path in sorted(Path(folder).iterdir()) if (text := _text(path))]
            if said:
                tell(said[int(time.monotonic() / _SHOWN) % len(said)])

    with tempfile.TemporaryDirectory(prefix="flashsim-") as folder:
        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        try:
            yield folder
        finally:
            ended.set()
            thread.join()


def say_in(folder: str) -> None:
    """Leave what this process does in a folder from now on."""
    file = Path(folder, str(os.getpid()))

    @contextmanager
    def show(what: str) -> Iterator[Progress]:
        said = 0.0

        def tell(done: float, total: float, message: str = "") -> None:
            nonlocal said
            if time.monotonic() - said >= _OFTEN:
                said = time.monotonic()
                share = f" {done / total:.0%}" if total else ""
                with suppress(OSError):  # nobody listens any more
                    file.write_text(f"{what}{share} {message}".strip(), encoding="utf-8")

        tell(0, 0)
        try:
            yield tell
        finally:
            with suppress(OSError):
                file.unlink()

    show_workers_by(show)


def _text(file: Path) -> str:
    with suppress(OSError, UnicodeDecodeError):  # ended meanwhile, or is being written
        return file.read_text(encoding="utf-8")
    return ""

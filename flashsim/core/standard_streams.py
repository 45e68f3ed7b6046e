"""Standard output and standard error of a command: what cannot be written there, as where a reader has gone, ends nothing else."""

import io
import os
import select
import sys
from typing import Any, TextIO

from flashsim.core.errors import StandardOutputError

_OUTPUT, _ERROR = 1, 2


class _StreamDescriptor(io.FileIO):
    """A descriptor of the process; `number` leads nowhere if it was closed."""

    def __init__(self, number: int, *, was_closed: bool) -> None:
        super().__init__(number, "wb", closefd=False)
        self._was_closed = was_closed

    def write(self, data: Any) -> int:
        """Write bytes.

        Raises StandardOutputError: standard output does not take them; what standard error does not take is dropped.
        """
        try:
            if self._was_closed:
                raise OSError("it is closed")
            while (count := super().write(data)) is None:  # somebody has made it non-blocking
                select.select([], [self], [])
            return count
        except OSError as problem:
            if self.fileno() == _OUTPUT:
                raise StandardOutputError(problem.strerror or str(problem)) from None
            return len(data)


def guard() -> None:
    """Let what standard output does not take be a `StandardOutputError`, and characters that its encoding lacks be replaced.

    What standard error does not take is dropped. Descriptors that a shell closed lead nowhere: no file that is opened takes their number.
    """
    for number in range(_ERROR + 1):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout, sys.stderr = _guarded_stream(sys.stdout, _OUTPUT, "replace"), _guarded_stream(sys.stderr, _ERROR, "backslashreplace")


def _guarded_stream(stream: TextIO | None, number: int, errors: str) -> TextIO:
    binary = io.BufferedWriter(_StreamDescriptor(number, was_closed=stream is None))
    encoding = stream.encoding if stream else "utf-8"
    buffered = number == _OUTPUT and not binary.isatty()
    return io.TextIOWrapper(binary, encoding, errors, line_buffering=not buffered, write_through=not buffered)

"""Interrupts that are not lost, though an exception in the middle of a compilation may be swallowed or come out as another one.

Numba and LLVM call back into Python from C while they compile: an interrupt that is raised there is reported as "ignored" at best, and
at worst makes the compilation fail later, as an error of its own.
"""

import signal
import sys
from types import FrameType
from typing import Any

#: Seconds after which an interrupt that had no effect is raised again.
_REPEAT = 0.2

_interrupted = False
#: Signals that `finish` has given no effect.
_finished = set[int]()


def heed() -> None:
    """Let interrupts, and requests to terminate, raise KeyboardInterrupt in the main thread until one has an effect."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # as it is in a shell's background
        signal.signal(signal.SIGINT, _interrupt)
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGALRM, _again)
    usual = sys.unraisablehook

    def report(problem: Any) -> None:
        if not _interrupted:
            usual(problem)

    sys.unraisablehook = report


def is_interrupted() -> bool:
    """There was an interrupt; it is not raised again."""
    if _interrupted:
        signal.setitimer(signal.ITIMER_REAL, 0)
        exec("")  # Python takes an interrupt in code that was compiled from text for an unhandled one, until such code has run again
    return _interrupted


def settle() -> bool:
    """Nothing is left to do but to exit: later interrupts have no effect; whether there was one."""
    while True:
        try:
            for number in (signal.SIGALRM, signal.SIGINT, signal.SIGTERM):  # a timer that fires when Python's handlers are gone kills
                signal.signal(number, signal.SIG_IGN)
            return is_interrupted()
        except KeyboardInterrupt:  # a last one
            continue


def finish() -> None:
    """End what may be interrupted, before files are put in place: an interrupt that had no effect is raised, and later ones have none.

    Raises
    ------
    KeyboardInterrupt
        There was an interrupt.
    """
    if signal.getsignal(signal.SIGTERM) is not _interrupt:  # not heeded here, as in a notebook
        return
    if _interrupted:
        raise KeyboardInterrupt
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.signal(number, signal.SIG_IGN) is _interrupt:
            _finished.add(number)


def release() -> None:
    """All files are in place: an interrupt ends the process at once, which may wait for whoever reads its output."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if number in _finished:
            signal.signal(number, signal.SIG_DFL)


def _interrupt(number: int, frame: FrameType | None) -> None:
    global _interrupted
    _interrupted = True
    signal.setitimer(signal.ITIMER_REAL, _REPEAT, _REPEAT)
    raise KeyboardInterrupt


def _again(number: int, frame: FrameType | None) -> None:
    if sys.exc_info()[0] is None:  # otherwise something is cleaning up already
        raise KeyboardInterrupt

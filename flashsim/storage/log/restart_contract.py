"""Demands of recovery on a restart design: `load` yields reads and writes, neither step fails, and both leave entries that can be."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any

from flashsim.core.errors import FlashsimError, in_one_line
from flashsim.storage.log.durable import TARGETS, DurableRead, DurableWrite
from flashsim.storage.log.records import CLEAN, DIRTY, Boot, Entry, Record, Version

#: What a write brings, by its target.
_CONTENTS = (Version, Version, Entry, Record, Boot)


def failure(design: str, step: str, problem: str | BaseException) -> FlashsimError:
    """Error of a design whose step of recovery fails, or breaks the contract."""
    reason = problem if isinstance(problem, str) else f"failed with {in_one_line(problem)}"
    return FlashsimError(f"restart design: {design}: {step} {reason}")


def load_steps(design: str, load: Callable[[], Iterable[Any]]) -> Generator[DurableRead | DurableWrite, None, None]:
    """The steps of a design's `load`; a `FlashsimError` if it fails, or breaks the contract."""
    try:
        for step in load():
            if not _is_step(step):
                raise failure(design, "load", f"must yield reads and writes, not {step!r:.60}")
            yield step
    except FlashsimError:
        raise
    except (Exception, SystemExit) as problem:
        raise failure(design, "load", problem) from problem


def _is_step(step: Any) -> bool:
    """True of a read, or of a write that brings what belongs there."""
    if not isinstance(step, DurableRead | DurableWrite) or step.target not in range(len(TARGETS)):
        return False
    keys = step.keys if isinstance(step, DurableRead) else [key for key, each in step.items if type(each) is _CONTENTS[step.target]]
    return len(keys) == len(step[1]) and all(type(key) is int for key in keys)


def check_entries(design: str, step: str, frames: int, entries: Mapping[int, Entry], frame_of: Mapping[int, int]) -> None:
    """Refuse entries of frames that there are not, and what is no entry of a page."""
    for frame, entry in entries.items():
        if type(frame) is not int or not 0 <= frame < frames:
            raise failure(design, step, f"leaves an entry of frame {frame!r:.40}, and there are {frames} frames")
        if type(entry) is not Entry or entry.state not in (CLEAN, DIRTY) or {*map(type, entry)} != {int} or min(entry[1:]) < 0:
            raise failure(design, step, f"leaves {entry!r:.60} as the entry of frame {frame}")
    for page, frame in frame_of.items():
        if frame not in entries or entries[frame].page != page:
            raise failure(design, step, f"leaves frame {frame!r:.40} to page {page!r:.40}, which its entry does not have")

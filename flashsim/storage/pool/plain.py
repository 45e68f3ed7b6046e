"""A pool of frames in ordinary Python, for policies in their plain form: to be read, stepped through and compared with."""

from typing import Any

from flashsim.core.errors import FlashsimError, InvalidParameterError
from flashsim.core.replacement import NEVER_AGAIN, ReplacementPolicy
from flashsim.storage.pool.reference import TOOK_FREE, WAS_RESIDENT, WRITE_BACK, breach, failure


class PlainPool:
    """Frames whose pages a plain policy replaces.

    Parameters
    ----------
    policy
        Which page leaves.
    frames
        Pages that the pool holds.
    seed
        Of what the policy draws.
    """

    def __init__(self, policy: ReplacementPolicy, frames: int, seed: int = 0) -> None:
        self.name, self.size, self.seed = policy.name, frames, seed
        self.now = self.next_use = 0
        self.written_again = False
        #: Pages in frames, and whether each was written since it was read.
        self.resident: dict[int, bool] = {}
        #: Pages that are held in their frames.
        self.held: set[int] = set()
        #: Pages that were ever referenced.
        self.known: set[int] = set()
        if policy.plain is None:
            raise FlashsimError(f"replacement policy '{policy.name}' has no plain form")
        try:
            self.policy: Any = policy.plain(self, **policy.parameters)
        except (Exception, SystemExit) as problem:
            raise failure(self.name, "Plain", 0, problem) from problem

    def pinned(self, page: int) -> bool:
        return page in self.held

    def dirty(self, page: int) -> bool:
        """Whether it was written since it was read or written back."""
        return self.resident.get(page, False)

    def refer(self, page: int, write: bool = False, next_use: int = 0) -> int:
        """Let a page be referenced; returns what came of it (`flashsim.storage.pool.reference.refer`)."""
        if len(self.held) == self.size and page not in self.resident:
            raise InvalidParameterError("fix", f"page {page}", f"0 of {self.size} frames are not held by somebody")
        self.now, self.next_use, self.written_again = self.now + 1, next_use & NEVER_AGAIN, next_use < 0
        self.known.add(page)
        if page in self.resident:
            self.resident[page] |= write
            self._ask("hit", page)
            return WAS_RESIDENT
        outcome = TOOK_FREE
        if len(self.resident) == self.size:
            leaving = self._ask("victim", page)
            if not isinstance(leaving, int):
                raise breach(self.name, -1, self.now)
            if leaving not in self.resident:
                raise breach(self.name, -4 if leaving == page else -2, self.now)
            if leaving in self.held:
                raise breach(self.name, -3, self.now)
            outcome = leaving + WRITE_BACK if self.resident.pop(leaving) else leaving
        self.resident[page] = write
        self._ask("enter", page)
        return outcome

    def drop(self, page: int) -> None:
        del self.resident[page]
        self._ask("forget", page)

    def _ask(self, method: str, page: int) -> Any:
        try:
            return getattr(self.policy, method)(page)
        except FlashsimError:
            raise
        except (Exception, SystemExit) as problem:
            raise failure(self.name, method, self.now, problem) from problem

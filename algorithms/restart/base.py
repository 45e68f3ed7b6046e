"""Contract of restart designs: what of the frame table is hardened, when, and what recovery makes of it.

A member says which changes of a frame's entry it hardens and how (``HARDENS``), whether the whole table is written again and again
(``FLUSHES``), how many bytes an entry has (``ENTRY``), and takes part in recovery: ``load`` fills in entries before analysis, and may yield
writes; ``meet`` sees every record of analysis.  ``GUARDS`` names what it does against each way in which a copy on the SSD could be wrong,
and what happens without.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from flashsim.core.errors import InvalidParameterError, check_known
from flashsim.core.members import Family, optional
from flashsim.core.request import SECTOR
from flashsim.storage.log.records import Record
from flashsim.storage.log.recovery import CLEANED, IN_LOG_AT_ONCE, Recovery, RestartDesign, Steps

#: Guards of the database itself, and what happens without each.
COMMON_GUARDS = {
    "log-before-disk": "a page reaches the disk before the records of its changes: what was not committed cannot be undone",
    "ssd-in-checkpoints": "checkpoints do not count pages that are newer on the SSD: the log that the disk needs is truncated (4.3.1)",
    "buf-write-after-cleaning": "a page written to the SSD alone counts as on disk (4.3.1)",
    "force-unit-access": "a power cut takes completed writes of pages from volatile write buffers, and the log that they need is truncated",
    "page-images": "a page torn on disk in a power cut cannot be made again from records of its changes (not in the thesis)",
    "writes-in-flight": "checkpoints do not count pages on their way to disk: the log that they need is truncated",
}
#: Guards that several restart designs have.
LOG_BEFORE_SSD = {"log-before-ssd": "a page reaches the SSD before the records of its changes, and is found there"}
BOTH_WRITES = {"both-writes": "a frame counts as clean when the SSD has its page and the disk has not: once replaced, it is lost (4.3.1)"}
BEFORE_REPLACEMENT = {"harden-replacement": "a frame is overwritten while its old page counts as valid (violation A)"}
BEFORE_REUSE = {
    "harden-before-reuse": "a frame that an update or a move of its page freed is overwritten while its old page counts as valid"
}


class Restart(Protocol):
    """A member's module."""

    TITLE: str
    HARDENS: Mapping[int, int] = {}
    FLUSHES: bool = False
    ENTRY: int = 51
    GUARDS: Mapping[str, str] = {}

    @optional
    def load(self, recovery: Recovery) -> Steps:
        """Fill in the entries before analysis: none, every frame is free."""
        yield from ()

    @optional
    def meet(self, recovery: Recovery, lsn: int, record: Record) -> None:
        """Let a record of the log change entries in analysis: none does."""


RESTARTS = Family("algorithms.restart", "restart design", Restart)


def _are_changes(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        type(change) is type(how) is int and 0 <= change <= CLEANED and 0 <= how <= IN_LOG_AT_ONCE for change, how in value.items()
    )


#: Attributes of a member, what is allowed, and whether a value is.
_ALLOWED: Sequence[tuple[str, str, Callable[[Any], bool]]] = (
    ("TITLE", "it must be a text", lambda value: isinstance(value, str)),
    ("HARDENS", "it must have for changes (REPLACED, WRITTEN, MODIFIED, CLEANED) one of IN_TABLE, IN_LOG, IN_LOG_AT_ONCE", _are_changes),
    ("FLUSHES", "it must be True or False", lambda value: isinstance(value, bool)),
    ("ENTRY", f"it must be a whole number of bytes from 1 to {SECTOR}", lambda value: type(value) is int and 1 <= value <= SECTOR),
    (
        "GUARDS",
        "it must have for each guard's name a text, what goes wrong without it",
        lambda value: isinstance(value, Mapping) and all(isinstance(text, str) for pair in value.items() for text in pair),
    ),
)


def restart_design(name: str) -> RestartDesign:
    """A restart design, by name or as ``FILE.py``.

    Raises UnknownNameError or MissingFileError: there is no such design or file; InvalidParameterError: one of its attributes is not as the
    contract has it.
    """
    member = RESTARTS.load(name)
    for attribute, bound, is_allowed in _ALLOWED:
        if not is_allowed(value := getattr(member, attribute)):
            raise InvalidParameterError(f"restart design: {name}: {attribute}", repr(value), bound)
    return RestartDesign(name, dict(member.HARDENS), member.FLUSHES, member.load, member.meet, dict(member.GUARDS), member.ENTRY)


def check_guards(design: RestartDesign, names: Sequence[str]) -> None:
    """Refuse guards that neither the database nor a restart design has.

    Raises UnknownNameError: there is no such guard.
    """
    known = [*COMMON_GUARDS, *design.guards]
    for name in names:
        check_known(f"guard of {design.name}", name, known)

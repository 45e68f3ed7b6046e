"""The contract of a flash translation layer.

A member defines one function, decorated with `flashsim.core.kernel.lean_kernel`::

    translate(operation, page, partial, flash, policies) -> rows

It is called for each flash page of the host's address space that a command touches, in order, when the command is admitted.  It changes the
logical state at once and notes in `plan` the flash operations that this takes, in order (docs/decisions/0006 says what a row means); it
returns their number, at most ``control.plan_rows``, or BAD_VICTIM.  `flash` are the drive's arrays (`flashsim.ssd.state.flash`), named
below without it; `policies` is handed on to what asks them.  `operation` is READ, WRITE or TRIM; `partial`
says that a write covers only part of the flash page.

*Read*: one READ_PAGE, or ZERO_PAGE where nothing is mapped.  *Write*: one PROGRAM_PAGE, which needs a FETCH_PAGE if it is partial and the
page is mapped.  *Trim*: the page is unmapped.  Beside these any other operations, before or after, with their causes.

The order of rows is the order of execution on each die, so a row may only rely on rows and commands before it.  In particular a block is
reclaimed while the page that is being written still counts as valid: its erase then never waits for that same write.  On each block pages
are programmed in ascending order, and only after an erase.

`mapping` has the true place of every page and is kept with the functions of `flashsim.ssd.state.pools`, whatever the layer's own tables
look like: those that it needs stand in `own`, an int64 vector.

What else a member may define stands in `TranslationLayer`.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numba import types

from flashsim.core.errors import RefusedError
from flashsim.core.kernel import kernel_of
from flashsim.core.members import Family, optional
from flashsim.core.policies import Policies, Policy
from flashsim.core.records import VECTOR
from flashsim.core.request import Integers
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.state.flash import FLASH, Flash


class TranslationLayer(Protocol):
    """A member of the family; what it leaves out is as here."""

    translate: Callable[[int, int, int, Flash, Policies], int]
    #: False if it merges blocks instead of collecting garbage: the parameter `gc` must then be ``"none"``.
    COLLECTS: bool = True
    #: Parameters that the layer uses and others do not: ``log_blocks``, ``map_cache``.  Others must be 0.
    USES: tuple[str, ...] = ()
    #: True if any logical page may lie on any page of its plane: `flashsim.ssd.precondition` then lays out pages as long random
    #: writes do, and `recover` does the rest.
    PLACES_FREELY: bool = False
    #: True if pages may be written by `flashsim.ssd.state.collection.write_group` instead, several at once, as drives do that map units
    #: below the flash page.
    GATHERS: bool = False
    #: Rebuilds its own table after a power cut, from arrays that `flashsim.ssd.state.recovery` has rebuilt.
    recover: Callable[[Any], None] | None = None

    @optional
    def check(self, parameters: SsdParameters) -> None:
        """Raise InvalidParameterError or RefusedError for what it cannot work with; called before all the others."""

    @optional
    def map_pages(self, parameters: SsdParameters) -> int:
        """Translation pages that the FTL keeps on flash; they are logical pages after those of the host."""
        return 0

    @optional
    def plan_rows(self, parameters: SsdParameters) -> int:
        """The most rows of a plan, where that is more than a write with garbage collection takes."""
        return 0

    @optional
    def own_table(self, parameters: SsdParameters) -> Integers:
        """The layer's own int64 vector, as of an empty drive."""
        return np.zeros(1, np.int64)

    @optional
    def prepare(self, state: Any) -> None:
        """Take what it keeps for itself on an empty drive, such as blocks, and set the scalars of `control` that this changes."""

    @optional
    def statistics(self, state: Any) -> dict[str, Any]:
        """Statistics that the layer adds to those of a drive, or reports otherwise, by name."""
        return {}


FAMILY = Family("flashsim.ssd.ftl", "flash translation layer", TranslationLayer)
_SIGNATURE = types.int64(types.int64, types.int64, types.int64, FLASH, VECTOR)
TRANSLATE = Policy(FAMILY, "translate", 0, types.FunctionType(_SIGNATURE))
#: ``translate_of(policies)(operation, page, partial, flash, policies)`` in a kernel.
translate_of = TRANSLATE.accessor()
SPECIAL = ("log_blocks", "map_cache")  #: Parameters that only some members have a use for.


@kernel_of(_SIGNATURE, on_demand=True)
def plan_page(operation: int, page: int, partial: int, flash: Flash, policies: Policies) -> int:
    """Call a drive's translation layer from Python; the rows of its plan, or BAD_VICTIM."""
    return int(translate_of(policies)(operation, page, partial, flash, policies))


def compatible_layer(parameters: SsdParameters) -> TranslationLayer:
    """The member that a drive uses, if it can work with the other parameters.

    Raises UnknownNameError or MissingFileError or FlashsimError or InvalidParameterError: there is no such member, or it cannot be
    imported, or it refuses a parameter; RefusedError: a garbage collection policy for a layer that merges blocks, or none for one that
    collects; a parameter that is meant for others.
    """
    member = FAMILY.load(parameters.ftl)
    if (parameters.gc == "none") == member.COLLECTS:
        needs = "collects garbage and needs a policy" if parameters.gc == "none" else "merges blocks instead: use none"
        raise RefusedError(f"gc: '{parameters.gc}' does not go with ftl '{parameters.ftl}', which {needs}")
    for name in SPECIAL:
        if (value := getattr(parameters, name)) and name not in member.USES:
            raise RefusedError(f"{name}: {value}, but ftl '{parameters.ftl}' has no use for it: use 0")
    if parameters.group > 1 and not member.GATHERS:
        name = "mapping_unit" if parameters.units > 1 else "one_shot"
        raise RefusedError(f"{name}: ftl '{parameters.ftl}' maps whole flash pages, and programs them one by one: use page")
    for name, chosen in (("slc_cache", parameters.slc_cache > 0), ("placement_handles", parameters.placement_handles > 1)):
        if chosen and not member.GATHERS:
            raise RefusedError(f"{name}: ftl '{parameters.ftl}' has none: use page")
    member.check(parameters)
    return member

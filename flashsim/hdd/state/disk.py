"""The arrays of a disk as one thing, which kernels take; `terms` and `layout` say what their columns mean."""

from typing import NamedTuple

from numba import types

from flashsim.core.array_types import MATRIX, VECTOR
from flashsim.core.request import Integers


class Disk(NamedTuple):
    """The state of a drive."""

    #: The drive's numbers.
    control: Integers
    #: How the drive is once its active command is served, and how it was before that.
    state: Integers
    before: Integers
    #: Where sectors lie (`flashsim.hdd.state.layout`).
    extents: Integers
    #: The seek curve.
    seeks: Integers
    #: Segments of the buffer.
    segments: Integers
    #: Writes in the buffer.
    ring: Integers
    #: Commands that wait, in the order in which they came.
    waiting: Integers
    #: Room for what a scheduler looks at.
    candidates: Integers


DISK = types.NamedTuple((VECTOR, VECTOR, VECTOR, MATRIX, VECTOR, MATRIX, MATRIX, VECTOR, MATRIX), Disk)

"""The arrays of a disk, or of an array of disks, as one thing, which kernels take; `terms` and `layout` say what their columns mean."""

from __future__ import annotations

from typing import NamedTuple

from numba import types

from flashsim.core.array_types import MATRIX, VECTOR
from flashsim.core.request import Integers


class Disk(NamedTuple):
    """The state of drives of one kind."""

    #: The drive's numbers.
    control: Integers
    #: A row a drive, then one for each as it was when its active command started.
    drives: Integers
    #: Where sectors lie (`flashsim.hdd.layout`).
    extents: Integers
    #: The seek curve.
    seeks: Integers
    #: Segments of the buffers.
    segments: Integers
    #: Writes in the buffers.
    ring: Integers
    #: Commands that wait at their drives; row 0 leads to the free ones.
    waiting: Integers
    #: Room for what a scheduler looks at.
    candidates: Integers


DISK = types.NamedTuple((VECTOR, MATRIX, MATRIX, VECTOR, MATRIX, MATRIX, MATRIX, MATRIX), Disk)

"""References to pages, as policies and curves take them: batch after batch, in their order."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from flashsim.core.request import Integers

#: References of a batch, about.
BATCH = 1 << 19


class References(NamedTuple):
    """A batch of references.

    Parameters
    ----------
    pages
        The id of the page that each asks for, any number of 64 bits, int64, shape (n,).
    writes
        Whether each changes the page, shape (n,); None: none of them does, or nobody knows.
    """

    pages: Integers
    writes: npt.NDArray[np.bool_] | None = None


#: All references of a trace, in constant memory.
ReferenceBatches = Iterator[References]

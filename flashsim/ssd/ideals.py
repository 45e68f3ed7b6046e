"""Parts of a drive that cost no time in a counterfactual run, while all decisions stay as they are.

Work of a cause takes a nanosecond in place of its time, which no model of events can do without; a server that is ideal serves any number
of operations at once.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from flashsim.core.errors import RefusedError, check_known
from flashsim.core.parameters import check_once
from flashsim.core.spans import FOLD, GC, MAP, MERGE, WEAR

Narrow = npt.NDArray[np.int32]

#: Causes whose work takes no time, by name.
CAUSES = {"collection": GC, "merges": MERGE, "map": MAP, "wear": WEAR, "folding": FOLD}
#: Servers for which nothing waits.
SERVERS = ("dies", "channels", "controller")
#: The pages of a word line lie that far apart in what is loaded: the only one that changes a decision.
SPREAD = "word_lines"


def ideals_in(text: str) -> tuple[str, ...]:
    """The names in a text that joins them by ``+``, each of `CAUSES` or `SERVERS`, or `SPREAD`, and each once.

    >>> ideals_in("collection+dies"), ideals_in("")
    (('collection', 'dies'), ())
    """
    names = tuple(text.split("+")) if text else ()
    for name in names:
        check_known("ideal", name, (*CAUSES, *SERVERS, SPREAD))
    check_once("ideal", names)
    return names


def spread(targets: Narrow, pools: int, levels: int, units: int) -> Narrow:
    """Mapping units in the order in which they are written so that the flash pages of a word line hold none that follow one another.

    In each stripe of whole word lines of all pools, of `levels` flash pages of `units` each, the flash pages follow one another from pool
    to pool.

    >>> spread(np.arange(8), 2, 2, 2).tolist()
    [0, 1, 4, 5, 2, 3, 6, 7]
    """
    whole = len(targets) // (pools * levels * units) * pools * levels * units
    stripes = targets[:whole].reshape(-1, levels, pools, units).transpose(0, 2, 1, 3)
    return np.concatenate([stripes.ravel(), targets[whole:]])


def refuse_ideals(drive: Any) -> None:
    """Refuse to record the work of a drive (`flashsim.ssd.parameters.SsdParameters`) of which some takes no time."""
    if drive.ideal:
        raise RefusedError(f"ideal: the work of a drive with ideal {drive.ideal} is not recorded")

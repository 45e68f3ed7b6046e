"""``fs.why``: why a run took its time, or why one device takes longer than another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flashsim.core.errors import RefusedError
from flashsim.operations.operation import in_words_of_python

if TYPE_CHECKING:
    from flashsim.operations.face._replay_outcome import ReplayOutcome
    from flashsim.operations.face._why_outcome import WhyDifferenceOutcome, WhyOutcome
    from flashsim.operations.face.join import JoinOutcome


def why(result: JoinOutcome | ReplayOutcome, other: JoinOutcome | ReplayOutcome | None = None) -> WhyOutcome | WhyDifferenceOutcome:
    """Say why a join or a replay took its time on its first device; or, of two, why one device takes longer than the other.

    Parameters
    ----------
    result
        What `fs.join` returned, on one or several simulated devices, or `fs.replay` with ``why=True``.
    other
        The same on another device.

    Raises
    ------
    RefusedError
        A join has several strands, a device's parts are not recorded, or the two make other requests by design.

    Examples
    --------
    >>> import flashsim as fs, pandas as pd
    >>> r, s = pd.DataFrame({"key": range(500)}), pd.DataFrame({"key": range(0, 3000, 2)})
    >>> slow, fast = (fs.join(r, s, on="key", device=device, memory="64KiB") for device in ("toshiba-5400-320gb", "ocz-core-60gb"))
    >>> fs.why(slow, fast).title.split(":")[0]
    'ocz-core-60gb is 1.26 times as fast as toshiba-5400-320gb'
    """
    from flashsim.experiments.why.differences import RunDifference
    from flashsim.operations.face._why_outcome import WhyDifferenceOutcome

    with in_words_of_python():
        for one in (result, other):
            if one is not None and not hasattr(one, "why"):
                raise RefusedError(f"why: {type(one).__name__} is no result that can be taken apart; fs.join makes one, and fs.replay")
        if other is None:
            return result.why()
        return WhyDifferenceOutcome(RunDifference(result.why().result, other.why().result))

"""``fs.why``: why a run took its time, or why it is faster than another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Union

from flashsim.core.errors import RefusedError
from flashsim.operations.operation import in_words_of_python

if TYPE_CHECKING:
    from flashsim.operations.face._replay_outcome import ReplayOutcome
    from flashsim.operations.face._why_outcome import WhyDifferenceOutcome, WhyOutcome
    from flashsim.operations.face.join import JoinOutcome
    from flashsim.operations.face.pool import PoolOutcome


Explained = Union["JoinOutcome", "ReplayOutcome", "PoolOutcome"]


def why(result: Explained, other: Explained | None = None) -> WhyOutcome | WhyDifferenceOutcome:
    """Say why the first run of a result took its time; or, of two results, why one is faster.

    Parameters
    ----------
    result
        What `fs.join` or `fs.pool` returned, of simulated devices, or `fs.replay` with ``why=True``.
    other
        The same requests on another device, other ones on the same, or another system of pools.

    Raises
    ------
    RefusedError
        A join has several strands, a device's parts are not recorded, or requests and devices both differ by design.

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
        for one in (result,) if other is None else (result, other):
            if not hasattr(one, "why"):
                raise RefusedError(f"why: {type(one).__name__} is not a result of fs.join, fs.replay or fs.pool")
        if other is None:
            return result.why()
        return WhyDifferenceOutcome(RunDifference(result.why().result, other.why().result))

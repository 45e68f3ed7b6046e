"""The percentiles that reports give, up to the tail."""

from collections.abc import Mapping

from flashsim.core.units import format_duration
from traces.summary.histogram import Histogram

PERCENTILES = (50, 90, 99, 99.9, 99.99)
#: Names of what `summary` gives.
SUMMARY = ("mean", *(f"p{share:g}" for share in PERCENTILES), "max")
#: Columns of tables that show it, and what stands in them.
COLUMNS = dict(zip(("mean", *(f"{share:g} %" for share in PERCENTILES), "max"), SUMMARY, strict=True))


def summary(times: Histogram) -> dict[str, float]:
    """Mean, percentiles and maximum of times.

    Examples
    --------
    >>> import numpy as np
    >>> times = Histogram()
    >>> times.add(np.array([1, 2, 6]))
    >>> summary(times)["mean"], summary(times)["p50"], summary(times)["max"]
    (3.0, 2, 6)
    """
    values = (times.mean, *(times.percentile(share) for share in PERCENTILES), times.maximum)
    return dict(zip(SUMMARY, values, strict=True))


def durations(times: Mapping[str, float], part: str = "") -> dict[str, str]:
    """What `COLUMNS` show of a `summary` of ns, each name of which begins with `part`."""
    return {column: format_duration(round(times[part + name])) for column, name in COLUMNS.items()}

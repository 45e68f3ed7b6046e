"""Outcomes of why: one run taken apart, and the difference of two."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from flashsim.core.errors import InvalidParameterError
from flashsim.core.units import MILLISECONDS_A_SECOND
from flashsim.experiments.why.answers import RunWhy
from flashsim.experiments.why.differences import RunDifference
from flashsim.operations.outcome import PICTURE, Outcome, frame

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from flashsim.experiments.presentation.terminal import Part


#: Columns of what a mechanism is worth; and the share of a run's I/O below which a row is not shown.
_WORTHS, _SHOWN = ("alone_s", "last_s", "removed_s", "shapley_s"), 0.0005


class WhyOutcome(Outcome):
    """Where the time of a run went, what each mechanism of the device is worth, and where it differs from the formula."""

    FILES = (PICTURE,)
    result: RunWhy

    def __init__(self, result: RunWhy, provenance: dict[str, Any] | None = None) -> None:
        super().__init__(result, f"{result.title}: {result.sentence}", provenance)

    def summary(self) -> pd.DataFrame:
        """One row per phase and step: the formula, the differences from it, which sum to the run's time, and the run.

        They are seconds of I/O of a phase, of a mean request of a replay, and of a mean transaction of pools.
        """
        return frame(self.result.step_rows())

    def phases(self) -> pd.DataFrame:
        """One row per phase and part of its time, which sum to what elapsed: seconds, seconds per request, and as a share."""
        return frame(self.result.path_rows())

    def mechanisms(self) -> pd.DataFrame:
        """One row per mechanism: what it costs alone, as the last of all, and removed after those above it, in seconds as of steps."""
        return frame(self.result.worth_rows())

    def printout(self) -> Iterator[Part]:
        yield from parts_of(self.result)

    def _draw(self) -> Figure:
        from flashsim.experiments.presentation.plots import waterfall

        return waterfall(self.result.total_steps(), self.title)


class WhyDifferenceOutcome(Outcome):
    """Why one run takes longer than another."""

    FILES = (PICTURE,)
    result: RunDifference

    def __init__(self, result: RunDifference) -> None:
        super().__init__(result, result.sentence, {})

    def summary(self) -> pd.DataFrame:
        """One row per step from the first run to the second, in seconds."""
        return frame(self.result.steps(), ["step", "seconds"])

    def as_dict(self) -> dict[str, Any]:
        """The sentence and the steps, JSON-ready."""
        return {"sentence": self.result.sentence, "steps": dict(self.result.steps())}

    def _draw(self) -> Figure:
        from flashsim.experiments.presentation.plots import waterfall

        return waterfall(self.result.steps(), self.title)


def check_number(parameter: str, number: Any, count: int) -> None:
    """Refuse a run that there is not."""
    if not isinstance(number, int) or not 0 <= number < count:
        raise InvalidParameterError(parameter, repr(number), f"it is a number from 0 to {count - 1}")


def parts_of(why: RunWhy) -> Iterator[Part]:
    """The answer for people: the sentence, steps from the formula, mechanisms, and the parts of phases."""
    from flashsim.experiments.presentation.tables import Table
    from flashsim.experiments.presentation.terminal import Explanation

    yield Explanation(f"Why: {why.sentence}")
    least = _SHOWN * why.total_steps()[-1][1]
    steps = [[title, MILLISECONDS_A_SECOND * seconds] for title, seconds in why.total_steps() if abs(seconds) >= least]
    yield from ("", Table(["step", f"ms per {why.unit}" if why.unit else "I/O ms"], steps, digits=3))
    rows = [
        row | {name: MILLISECONDS_A_SECOND * row[name] for name in _WORTHS if name in row}
        for row in why.worth_rows()
        if any(abs(row[name]) >= least for name in _WORTHS if name in row)
    ]
    columns = {"mechanism": "mechanism"} | dict(zip(("alone ms", "as the last ms", "removed in turn ms"), _WORTHS[:3], strict=True))
    columns |= {"Shapley ms": "shapley_s"} if any("shapley_s" in row for row in rows) else {}
    columns |= {"also changes": "changes"} if any(row["changes"] for row in rows) else {}
    if rows:
        yield from ("", Table.of(rows, columns, digits=3))
    rows = [row | {"share": f"{row['share']:.1%}", "ms": MILLISECONDS_A_SECOND * row["per_request_s"]} for row in why.path_rows()]
    columns = {"phase": "phase", "time went to": "part", "s": "seconds", f"ms per {why.unit or 'request'}": "ms", "share": "share"}
    yield from ("", Table.of(rows, columns, digits=4))

"""A run of a sweep: an operation whose result is kept as frames."""

from collections.abc import Callable
from typing import Any

from flashsim.core.errors import CapacityError, InvalidParameterError
from flashsim.operations.outcome import Outcome


def point_of(function: Callable[..., Outcome], **defaults: Any) -> Callable[..., dict[str, Any]]:
    """A function that makes one run of a sweep: JSON-ready frames of the result by name; of a refused run, a row with the problem.

    Changed stamps of its files make it another run.
    """

    def point(arguments: dict[str, Any], stamps: dict[str, str]) -> dict[str, Any]:
        try:
            outcome = function(**defaults | arguments)
        except (InvalidParameterError, CapacityError) as problem:
            return {"summary": [{"problem": str(problem)}]}
        return {name: getattr(outcome, name)().to_dict("records") for name in outcome.SWEPT}

    return point

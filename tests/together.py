"""Cases of a test that cost less than a test of their own: they run in one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

Test = Callable[..., None]


def together(names: str | Sequence[str], cases: Iterable[Any]) -> Callable[[Test], Test]:
    """In the place of `pytest.mark.parametrize`: one test that goes through all cases, with the same fixtures; a failure names its case."""
    parameters = [name.strip() for name in names.split(",")] if isinstance(names, str) else [*names]
    values = [dict(zip(parameters, case if len(parameters) > 1 else (case,), strict=True)) for case in cases]

    def decorate(test: Test) -> Test:
        @wraps(test)
        def run(**fixtures: Any) -> None:
            for each in values:
                try:
                    test(**each, **fixtures)
                except BaseException as problem:
                    problem.add_note(f"in the case {each}")
                    raise

        asked = inspect.signature(test)
        run.__signature__ = asked.replace(parameters=[each for each in asked.parameters.values() if each.name not in parameters])  # type: ignore[attr-defined]
        return run

    return decorate

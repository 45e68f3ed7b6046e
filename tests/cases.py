"""Tests of many small cases, each of which takes less time than to set up a test of its own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

Test = Callable[..., None]


def with_each(names: str | Sequence[str], cases: Iterable[Any]) -> Callable[[Test], Test]:
    """Run a test once with each case, as `pytest.mark.parametrize` does, but as one test; a failure names its case."""
    own = names.replace(",", " ").split() if isinstance(names, str) else names
    rows = [(case,) if len(own) == 1 else tuple(case) for case in cases]

    def decorate(test: Test) -> Test:
        @wraps(test)
        def run(*arguments: Any, **fixtures: Any) -> None:
            for row in rows:
                try:
                    test(*arguments, **fixtures, **dict(zip(own, row, strict=True)))
                except BaseException as failure:
                    failure.add_note(f"with {', '.join(own)} = {', '.join(map(repr, row))}")
                    raise

        signature = inspect.signature(test)
        run.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[each for name, each in signature.parameters.items() if name not in own]
        )
        return run

    return decorate

"""Numbered traces: what they tell of the future, piece by piece."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.caching import numbered
from experiments.caching.numbered import NumberedTrace
from flashsim.core.references import References
from tests.contract.pools import next_uses


@given(asked=st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=1, max_size=60), batch=st.integers(1, 20))
def test_next_uses_and_whether_pages_are_written_again(asked: list[tuple[int, bool]], batch: int) -> None:
    pages, writes = np.array([page for page, _ in asked], np.int64), np.array([write for _, write in asked])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numbered, "BATCH", batch)
        with NumberedTrace("", iter([References(pages, writes)])) as trace:
            trace.look_ahead()
            numbers = trace.part(0, len(asked))[0].tolist()
            middle = len(asked) // 2
            told = [*trace.next_uses(0, middle).tolist(), *trace.next_uses(middle, len(asked)).tolist()]
    assert told == next_uses(numbers, writes.tolist())

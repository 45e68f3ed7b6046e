"""Tests of many cases run all of them, and name the one that fails."""

from __future__ import annotations

import pytest

from tests.cases import with_each


def test_each_case_runs_and_the_one_that_fails_is_named(tmp_path: object) -> None:
    ran = []

    @with_each("number, text", [(1, "a"), (2, "b")])
    @with_each("last", ["x", ""])
    def test(number: int, tmp_path: object, text: str, last: str) -> None:
        ran.append((number, text, last, tmp_path))
        assert number == 1 or last

    with pytest.raises(AssertionError) as failure:
        test(tmp_path=tmp_path)
    assert ran == [(1, "a", "x", tmp_path), (1, "a", "", tmp_path), (2, "b", "x", tmp_path), (2, "b", "", tmp_path)]
    assert failure.value.__notes__ == ["with last = ''", "with number, text = 2, 'b'"]

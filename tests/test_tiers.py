"""Each test is in one tier, and the table of tiers names tests that there are."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from tests import tiers
from tests.together import together


class Case:
    def __init__(self, name: str) -> None:
        self.nodeid, self.marks = name, 0

    def add_marker(self, mark: Any) -> None:
        self.marks += 1


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "_TABLES", {"counts": {"a.py::many": 2, "a.py::dear": 0}, "deep_cases": {"b.py::few": ["x"]}})


def test_cases_that_are_not_counted_are_deep(table: None) -> None:
    cases = [
        Case(name)
        for name in (*(f"a.py::many[{number}]" for number in range(7)), "a.py::dear", "a.py::cheap", "b.py::few[x]", "b.py::few[y]")
    ]
    tiers.mark_deep(cases, whole_files=True)  # type: ignore[arg-type]
    marks = [case.marks for case in cases]
    assert sum(marks[:7]) == 5 and marks[7:] == [1, 0, 1, 0]


def test_a_name_without_a_test_is_refused_where_its_file_is_collected_as_a_whole(table: None) -> None:
    cases: Any = [Case("a.py::many[0]"), Case("b.py::few[x]")]
    with pytest.raises(pytest.UsageError, match="not there: a.py::dear$"):
        tiers.mark_deep(cases, whole_files=True)
    tiers.mark_deep(cases, whole_files=False)
    tiers.mark_deep(cases[1:], whole_files=True)


def test_cases_together_are_one_test_which_names_the_case_that_fails() -> None:
    seen = []

    @together("number, other", [(1, 2), (3, 3), (5, 6)])
    def differ(number: int, other: int, fixture: str) -> None:
        seen.append((number, fixture))
        assert number != other

    assert [*inspect.signature(differ).parameters] == ["fixture"]
    with pytest.raises(AssertionError) as failure:
        differ(fixture="here")
    assert seen == [(1, "here"), (3, "here")] and failure.value.__notes__ == ["in the case {'number': 3, 'other': 3}"]

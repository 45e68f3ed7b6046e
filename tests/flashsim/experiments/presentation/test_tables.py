"""Tables fit any width: nothing is lost, nothing is wider than it must be, and no number is parted."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flashsim.experiments.presentation.report import Section
from flashsim.experiments.presentation.tables import Table, as_text, with_caption, wrap_text
from flashsim.experiments.presentation.terminal import Explanation, fit_to_width
from tests.tiers import examples

ENTRIES = st.one_of(
    st.none(),
    st.integers(0, 10**12),
    st.floats(0, 1e9),
    st.sampled_from(["bnl", "hybrid-hash", "75.25 us", "12.5 %", "", "median error 12.5 %, largest 55.3 %", "a seek of 1,234.5 ms"]),
)


def numbers(text: str) -> Counter[str]:
    return Counter(re.findall(r"\d[\d,.]*\d|\d", text))


@st.composite
def tables(draw: st.DrawFn) -> Table:
    heads = draw(st.lists(st.sampled_from(["join", "I/O s", "formula requests", "with measured seek", "a"]), min_size=1, max_size=12))
    row = st.lists(ENTRIES, min_size=len(heads), max_size=len(heads))
    return Table(heads, draw(st.lists(row, min_size=1, max_size=5)), "a table", note="6 of 8 pages in 3.5 ms")


@settings(max_examples=examples(100, 4))
@given(table=tables(), width=st.integers(60, 200))
def test_a_table_fits_any_width_and_keeps_its_numbers(table: Table, width: int) -> None:
    lines, whole = as_text(table, width).splitlines(), as_text(table)
    assert max(map(len, lines)) <= width
    assert not numbers(whole) - numbers("\n".join(lines)), "a number is missing or in two parts"
    assert all(line == line.rstrip() for line in lines)
    if max(map(len, whole.splitlines())) <= width:
        assert lines == whole.splitlines()


def test_columns_without_an_entry_are_left_out() -> None:
    shown = as_text(Table(["join", "formula", "noise", "s"], [["bnl", None, "", 1.5], ["smj", None, "-", 2.5]]))
    assert shown == "join     s\n----  ----\nbnl   1.50\nsmj   2.50"
    assert as_text(Table(["join", "s"], [])) == "join  s\n----  -"


def test_a_wide_table_is_stacked_beside_the_columns_that_name_its_rows() -> None:
    heads = ["operation", "time", *(f"percentile {number}" for number in range(6))]
    rows = [["read", part, *(f"{number}.5 us" for number in range(6))] for part in ("waiting", "service")]
    first, second = as_text(Table(heads, rows), 60).split("\n\n")
    for part in first, second:
        assert [line.split()[:2] for line in part.splitlines()[-2:]] == [["read", "waiting"], ["read", "service"]]
    assert first.splitlines()[-1].split()[2:] == ["0.5", "us", "1.5", "us", "2.5", "us"]


def test_any_frame_is_shown_like_a_table_and_may_have_a_caption() -> None:
    rows = [{"join": "bnl", "requests": 1234, "s": 1.5}, {"join": "smj", "requests": 5, "s": None}]
    table = Table.of(rows, {"join": "join", "requests": "requests", "s": "s"}, note="6 of 8", digits=1)
    frame = with_caption(pd.DataFrame(rows), note="6 of 8", digits=1)
    assert as_text(table) == as_text(frame) == "join  requests    s\n----  --------  ---\nbnl      1,234  1.5\nsmj          5    -\n6 of 8"
    shown = Section("joins", tables=[frame]).tables[0]
    assert isinstance(table, pd.DataFrame) and shown["requests"].sum() == table["requests"].sum() == 1239


@given(
    text=st.lists(st.sampled_from(["it", "takes", "12.5 ms", "of", "1,234", "-0.5 %", "3 of 24", "well-known"]), max_size=30).map(" ".join)
)
def test_a_number_stays_beside_its_unit(text: str) -> None:
    lines = wrap_text(text, 20).splitlines()
    assert all(len(line) <= 20 for line in lines)
    assert all(not re.search(r"\d$", line) or re.match(r"-?\d", following) for line, following in pairwise(lines))
    assert " ".join(lines) == text


@pytest.mark.parametrize("columns", [None, 12])
def test_a_line_keeps_its_indentation(columns: int | None) -> None:
    assert all(line.startswith("    ") for line in fit_to_width("    its meaning is long", columns).splitlines())


def test_what_names_and_values_hold_controls_no_terminal() -> None:
    """Control sequences of a terminal, line ends, directions of writing and what is no character at all."""
    hostile = "a\x1b]0;mine\x07\nb\x9b2J\r\u202e\u2028"
    table = Table([hostile, "n"], [[hostile, 1], ["c", 2]], title=hostile, note=hostile)
    for part, lines in ((f"{hostile}\udce9", 1), (Explanation(hostile), 1), (table, 6), (pd.DataFrame({hostile: [hostile]}), 3)):
        shown = fit_to_width(part, None).split("\n")
        assert len(shown) == lines and all(map(str.isprintable, shown)), shown
    assert fit_to_width("a\n", None) == "a\n" and fit_to_width("", None) == ""

"""Units: what is written is read back, and nothing without a unit is taken."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashsim.core import units
from flashsim.core.errors import InvalidParameterError
from flashsim.core.units import format_duration, format_size, parse_duration, parse_size, transfer_time
from tests.cases import with_each

SIZES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


@given(st.integers(0, 10**5), st.sampled_from(sorted(SIZES)), st.booleans(), st.sampled_from(["", " "]))
def test_a_size_is_its_number_times_its_unit(number: int, unit: str, lower: bool, gap: str) -> None:
    assert parse_size(f"{number}{gap}{unit.lower() if lower else unit}") == number * SIZES[unit]


@given(st.integers(0, 999), st.integers(0, 999), st.sampled_from(sorted(SIZES)))
def test_a_fraction_is_rounded_to_the_nearest_byte_where_there_are_many(whole: int, thousandths: int, unit: str) -> None:
    exact, text = (whole + Fraction(thousandths, 1000)) * SIZES[unit], f"{whole}.{thousandths:03}{unit}"
    if exact.denominator > 1 and exact < 1023:
        with pytest.raises(InvalidParameterError, match="but a size is a whole number of bytes"):
            parse_size(text)
    else:
        assert abs(parse_size(text) - exact) <= Fraction(1, 2)


@with_each("parse, text", [(parse_size, "0.4B"), (parse_size, "0.6B"), (parse_size, "1.5B"), (parse_duration, "0.4ns")])
def test_what_is_not_nothing_never_becomes_nothing(parse: Callable[[str, str], int], text: str) -> None:
    with pytest.raises(InvalidParameterError, match=f"^think: '{text}', but "):
        parse(text, "think")


@given(st.integers(0, 10**6), st.sampled_from(["B", "KiB", "MiB", "GiB", "MB", "GB"]))
def test_whole_sizes_survive_a_round_trip(number: int, unit: str) -> None:
    size = number * SIZES[unit]
    assert parse_size(format_size(size)) == pytest.approx(size, rel=6e-4)
    if size < 1024 or size % 2**40 == 0:
        assert parse_size(format_size(size)) == size


@given(st.integers(0, 2**61))
def test_durations_survive_a_round_trip_to_four_digits(duration: int) -> None:
    assert parse_duration(format_duration(duration)) == pytest.approx(duration, rel=6e-4)


def test_durations_of_all_units() -> None:
    assert [parse_duration(text) for text in ("20us", "0.35ms", "2s", "7 ns", "1.5min")] == [20_000, 350_000, 2 * 10**9, 7, 90 * 10**9]
    assert format_duration(-1_500) == "-1.5 us"


@with_each("text", ["100", "", "MB", "1.MB", ".5MB", "1e3MB", "1 000MB", "1MB/s", "1XB", "1m", "nanMB", "10_0MB", "１MB"])
def test_anything_else_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidParameterError, match="^memory: .*, but a number with a unit is needed, such as"):
        parse_size(text, "memory")


def test_a_size_is_not_negative() -> None:
    with pytest.raises(InvalidParameterError, match="^memory: '-1MB', but it must not be negative"):
        parse_size("-1MB", "memory")


@pytest.mark.parametrize("parse, text", [(parse_size, "9999999999TB"), (parse_duration, "9999999999s")])
def test_what_would_overflow_is_refused(parse, text) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidParameterError, match="too large"):
        parse(text)


@given(st.integers(1, 2**40), st.integers(1, 10**10))
def test_a_transfer_takes_time_and_its_rate_is_kept(size: int, rate: int) -> None:
    taken = transfer_time(size, rate)
    assert taken >= 1
    assert abs(taken - Fraction(size * units.SECONDS, rate)) <= max(1, Fraction(taken, 10**15))


@with_each("text", ["512B", "8KiB", "64KB", "100MB", "100MiB", "1.5GiB", "500GB", "60GB", "4TB", "2TiB", "1GiB"])
def test_a_size_is_told_in_the_units_that_it_was_written_in(text: str) -> None:
    assert format_size(parse_size(text)).replace(" ", "") == text


@given(st.integers(0, 2**61))
def test_a_size_is_told_in_few_digits_and_within_a_thousandth(size: int) -> None:
    shown = format_size(size)
    assert len(shown.split()[0].replace(".", "")) <= 7 and abs(parse_size(shown.replace(" ", "")) - size) <= size / 1000

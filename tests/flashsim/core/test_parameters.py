"""Declared parameters: a bad value is refused by name, whatever is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from flashsim.core import parameters
from flashsim.core.errors import InvalidParameterError, UnknownNameError
from flashsim.core.parameters import build, describe
from tests.cases import with_each


@dataclass(frozen=True)
class Drive:
    """One parameter of every kind."""

    dies: int = parameters.count("dies", least=1, most=64)
    share: float = parameters.number("a share of the whole", least=0, most=1)
    overhead: int = parameters.duration("per command")
    page: int = parameters.size("a flash page")
    bus: int = parameters.rate("of the bus")
    name: str = parameters.text("what people call it")
    zones: tuple[tuple[float, ...], ...] = parameters.table("cylinders and sectors")


GOOD: dict[str, Any] = {
    "dies": 4, "share": 0.25, "overhead": "0.35ms", "page": "4KiB", "bus": "120MB/s", "name": "a drive", "zones": [[0, 10], [5, 8]],
}  # fmt: skip


def test_text_with_units_becomes_integers() -> None:
    drive = build(Drive, GOOD)
    assert drive == Drive(4, 0.25, 350_000, 4096, 120_000_000, "a drive", ((0, 10), (5, 8)))
    assert build(Drive, GOOD | {"overhead": 350_000, "page": 4096, "bus": 120_000_000}) == drive


def test_a_whole_number_is_a_number() -> None:
    assert build(Drive, GOOD | {"share": 1}).share == 1.0


@with_each("name", GOOD)
def test_a_missing_value_is_named(name: str) -> None:
    with pytest.raises(InvalidParameterError, match=f"^{name}: missing, but it is required"):
        build(Drive, {key: value for key, value in GOOD.items() if key != name})


def test_an_unknown_parameter_is_refused_with_suggestions() -> None:
    with pytest.raises(UnknownNameError, match="'overhaed' is unknown; did you mean overhead?"):
        build(Drive, GOOD | {"overhaed": "1ms"})


@with_each("name", GOOD)
@with_each("value", [None, True, [1, 2], {}, object()])
def test_a_value_of_the_wrong_kind_is_named(name: str, value: object) -> None:
    with pytest.raises(InvalidParameterError, match=f"^{name}: "):
        build(Drive, GOOD | {name: value})


@with_each(
    ("name", "value", "bound"),
    [
        ("dies", 0, "at least 1"), ("dies", 65, "at most 64"), ("dies", 1.5, "a number"), ("dies", "4", "a number"),
        ("share", -0.1, "at least 0"), ("share", 1.1, "at most 1"),
        ("share", float("nan"), "a number"), ("share", float("inf"), "a number"),
        ("overhead", -1, "at least 0"), ("overhead", "350", "a number with a unit"), ("overhead", "4KiB", "a number with a unit"),
        ("page", 0, "at least 1"), ("page", "4096", "a number with a unit"), ("page", "0B", "at least 1"),
        ("bus", "120MB", "a size a second"), ("bus", "0MB/s", "at least 1"), ("bus", "fast/s", "a number with a unit"),
        ("name", 5, "a name"), ("zones", 5, "a table"), ("zones", [1], "a table"),
        ("zones", [["a"]], "a table"), ("zones", "ab", "a table"),
    ],
)  # fmt: skip
def test_a_value_out_of_bounds_is_named_with_its_bound(name: str, value: object, bound: str) -> None:
    with pytest.raises(InvalidParameterError, match=f"^{name}: .*but .*{bound}"):
        build(Drive, GOOD | {name: value})


def test_a_description_gives_values_that_can_be_read_back() -> None:
    drive = build(Drive, GOOD)
    rows = describe(drive)
    assert [name for name, _, _ in rows] == list(GOOD)
    assert [meaning for _, _, meaning in rows][:2] == ["dies", "a share of the whole"]
    shown = {name: value for name, value, _ in rows if name in ("overhead", "page", "bus")}
    assert build(Drive, GOOD | shown) == drive

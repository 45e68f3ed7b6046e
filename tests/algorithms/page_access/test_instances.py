"""Families of page graphs by name, with parameters as text or as values."""

from __future__ import annotations

from typing import Any

import pytest

from algorithms.page_access.instances import FAMILIES, bipartite, instance_of, join_graph
from flashsim.core.errors import FlashsimError


def test_text_and_values_name_the_same_instance() -> None:
    for found, expected in (
        (instance_of("bipartite:pages=20,density=0.3,seed=4"), bipartite(20, 0.3, 4)),
        (instance_of("bipartite", pages=20, density=0.3, seed=4), bipartite(20, 0.3, 4)),
        (instance_of("join:pages=9,same_order=true", selectivity=1), join_graph(9, selectivity=1, same_order=True)),
    ):
        assert found.first.tolist() == expected.first.tolist() and found.pages == expected.pages
    for name in FAMILIES:
        assert instance_of(name).edges > 0


@pytest.mark.parametrize(
    ("text", "given", "message"),
    [
        ("generel", {}, "did you mean general"),
        ("general:page=3", {}, "parameter of general: 'page' is unknown; did you mean pages"),
        ("general", {"pages": 2.5}, "pages: 2.5, but a whole number is needed"),
        ("general:pages=2.5", {}, "pages: '2.5', but a whole number is needed"),
        ("general:pages", {}, "pages: '', but a whole number is needed"),
        ("general", {"pages": 0}, "pages: 0, but it must lie between 1 and 10000"),
        ("geometric", {"degree": 600}, "degree: 600.0, but it must lie between 0 and 500"),
        ("geometric:degree=x", {}, "degree: 'x', but a number is needed"),
        ("join:same_order=1", {}, "same_order: '1', but true or false is needed"),
        ("join:tuples=100000", {}, "tuples: 100000, but it must lie between 1 and 16384"),
        ("bipartite:density=nan", {}, "density: nan, but it must lie between 0 and 1"),
        ("general:seed=-1", {}, "seed: -1"),
    ],
)
def test_what_is_no_instance_is_refused(text: str, given: dict[str, Any], message: str) -> None:
    with pytest.raises(FlashsimError, match=message):
        instance_of(text, **given)

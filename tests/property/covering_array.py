"""Covering arrays: few rows of levels, one a factor, in which every pair of levels of two factors occurs that can."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

#: A level of each factor, or of some; and two levels of two factors.
Row = dict[str, str]
Pair = frozenset[tuple[str, str]]


def pairs_of(row: Row) -> set[Pair]:
    """All pairs of levels in a row."""
    return {frozenset(pair) for pair in combinations(row.items(), 2)}


def all_pairs(factors: Mapping[str, Sequence[str]]) -> list[Pair]:
    """Every pair of levels of two factors, in their order."""
    return [
        frozenset({(one, level), (other, beside)})
        for one, other in combinations(factors, 2)
        for level in factors[one]
        for beside in factors[other]
    ]


def covering_array(factors: Mapping[str, Sequence[str]], is_supported: Callable[[Row], bool]) -> list[Row]:
    """Make rows in which every supported pair occurs.

    `is_supported` says whether some levels can be completed to a whole row that is supported.  Each row begins with the first pair that is
    still missing; then each factor, those with the most levels first, takes the level that adds the most missing pairs.

    Examples
    --------
    >>> for row in covering_array({"a": "01", "b": "01", "c": "01"}, lambda row: not row.get("a") == row.get("b") == "1"):
    ...     print(*row.values())
    0 0 0
    0 1 1
    1 0 1
    1 0 0
    0 1 0
    """
    order = sorted(factors, key=lambda factor: -len(factors[factor]))
    missing = dict.fromkeys(pair for pair in all_pairs(factors) if is_supported(dict(pair)))
    used = {(factor, level): 0 for factor in factors for level in factors[factor]}
    rows = []
    while missing:
        row = dict(sorted(next(iter(missing))))
        for factor in order:
            if factor not in row:
                row[factor] = _best_level(row, factor, factors[factor], missing, used, is_supported)
        for pair in pairs_of(row):
            missing.pop(pair, None)
        for chosen in row.items():
            used[chosen] += 1
        rows.append({factor: row[factor] for factor in factors})
    return rows


def _best_level(
    row: Row, factor: str, levels: Sequence[str], missing: dict[Pair, None], used: dict[tuple[str, str], int],
    is_supported: Callable[[Row], bool],
) -> str:  # fmt: skip
    """The supported level that adds the most missing pairs to a row; among equals the one that was used least."""

    def merit(level: str) -> tuple[int, int]:
        return sum(frozenset({(factor, level), chosen}) in missing for chosen in row.items()), -used[factor, level]

    return next(level for level in sorted(levels, key=merit, reverse=True) if is_supported({**row, factor: level}))

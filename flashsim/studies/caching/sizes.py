"""Sizes of pools as people write them: shares of a trace's pages, pages, bytes, and ranges of these."""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from flashsim.core.errors import InvalidParameterError
from flashsim.core.units import format_size, parse_size
from traces.summary.miss_curve import LEAST_PAGES

#: A range is walked in so many steps, each larger by the same factor.
STEPS = 10
#: The largest pool: pages are numbered by 32 bits.
MOST_FRAMES = (1 << 31) - 16
_EXAMPLES = "a share such as 10%, pages such as 600pages, a size such as 4MiB, or a range such as 1%..80% is needed"
_SHARE, _PAGES = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*%"), re.compile(r"([0-9]+)\s*pages?")


@dataclass(frozen=True)
class PoolSize:
    """A size as it is shown, and its frames."""

    #: The size as written, or a step of a range.
    label: str
    #: Pages that the pool holds.
    frames: int


@dataclass(frozen=True)
class _Amount:
    """A number of percent, pages or bytes."""

    unit: str
    amount: float

    def frames(self, distinct: int, page_size: int) -> int:
        """Frames of a pool of this size, at least 1."""
        count = {"%": self.amount * distinct / 100, "pages": self.amount, "bytes": self.amount // page_size}[self.unit]
        return max(1, round(count))

    @property
    def label(self) -> str:
        if self.unit == "%":
            return f"{self.amount:.3g} %"
        return f"{self.amount:,.0f} pages" if self.unit == "pages" else format_size(round(self.amount))


def parse_sizes(text: str | Iterable[str]) -> list[tuple[_Amount, ...]]:
    """Sizes, and ends of ranges, of texts that hold one or several separated by commas.

    Examples
    --------
    >>> [size.frames for size in pool_sizes(parse_sizes("1%..100%,600pages"), 1000, 8192)]
    [10, 17, 28, 46, 77, 129, 215, 359, 599, 600, 1000]
    """
    parts = [text] if isinstance(text, str) else list(text)
    return [_range(each.strip()) for part in parts for each in part.split(",")]


def parse_share(value: str | float) -> float:
    """A share of pages, as ``1%`` or ``0.01``."""
    text = str(value).strip()
    with suppress(ValueError):
        share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
        if 0 < share <= 1:
            return share
    raise InvalidParameterError("sample", repr(value), "a share above 0 and up to 1 is needed, such as 1% or 0.01")


def parse_sample(value: str | float) -> tuple[float, int]:
    """The sample of a curve: the least share of pages, and the number of pages above which it is made thinner.

    ``8000pages`` is so many at most, however small a share of all that is.
    """
    if (match := _PAGES.fullmatch(str(value).strip())) and int(match[1]) > 0:
        return 0.0, int(match[1])
    return parse_share(value), LEAST_PAGES


def _range(text: str) -> tuple[_Amount, ...]:
    ends = tuple(_amount(end.strip(), text) for end in text.split(".."))
    if len(ends) > 2:
        raise InvalidParameterError("size", repr(text), _EXAMPLES)
    if len(ends) == 2 and (ends[0].unit != ends[1].unit or ends[0].amount >= ends[1].amount):
        raise InvalidParameterError("size", repr(text), "a range leads from a smaller size to a larger one of the same unit")
    return ends


def _amount(text: str, whole: str) -> _Amount:
    if match := _SHARE.fullmatch(text):
        amount = _Amount("%", float(match[1]))
    elif match := _PAGES.fullmatch(text):
        amount = _Amount("pages", float(match[1]))
    else:
        try:
            amount = _Amount("bytes", parse_size(text, "size"))
        except InvalidParameterError:
            raise InvalidParameterError("size", repr(whole), _EXAMPLES) from None
    if amount.amount <= 0:
        raise InvalidParameterError("size", repr(whole), "a pool holds at least one page")
    if amount.unit == "%" and amount.amount > 100:
        raise InvalidParameterError("size", repr(whole), "a share is at most 100 % of the trace's pages (a number of pages may be larger)")
    if amount.unit == "pages" and amount.amount > MOST_FRAMES:
        raise InvalidParameterError("size", repr(whole), f"a pool holds at most {MOST_FRAMES:,} pages")
    return amount


def pool_sizes(ranges: Sequence[tuple[_Amount, ...]], distinct: int, page_size: int) -> list[PoolSize]:
    """The pools that sizes come to for so many distinct pages of so many bytes, from the smallest on, no two of the same frames."""
    pools: dict[int, PoolSize] = {}
    for ends in ranges:
        for amount in ends:
            if amount.unit == "bytes" and not page_size <= amount.amount <= page_size * MOST_FRAMES:
                bound = f"a pool holds from one page of {format_size(page_size)} to {MOST_FRAMES:,} pages"
                raise InvalidParameterError("size", amount.label, bound)
        steps = [*np.geomspace(ends[0].amount, ends[1].amount, STEPS)] if len(ends) == 2 else [ends[0].amount]
        for step in steps:
            amount = _Amount(ends[0].unit, float(step))
            frames = amount.frames(distinct, page_size)
            pools.setdefault(frames, PoolSize(amount.label, frames))
    return sorted(pools.values(), key=lambda size: size.frames)

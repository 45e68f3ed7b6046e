"""Shares in percent and names of designs as people write them."""

import re
from collections.abc import Sequence
from contextlib import suppress

from algorithms.extensions.base import DESIGNS
from flashsim.core.errors import InvalidParameterError
from flashsim.studies.pooling.session import PARTS

#: Between two names: a comma that no parameter stands behind.
_BETWEEN = re.compile(r",(?![^,:]*=)")


def parse_percent(written: str | float, parameter: str) -> int:
    """Whole percent of a share, as ``50%`` or ``0.5``.

    Examples
    --------
    >>> parse_percent("50%", "dirty_limit"), parse_percent(0.9, "dirty_limit")
    (50, 90)
    """
    text = str(written).strip()
    with suppress(ValueError):
        share = float(text[:-1]) if text.endswith("%") else 100 * float(text)
        if 0 <= share <= 100 and abs(share - round(share)) < 1e-9:
            return round(share)
    raise InvalidParameterError(parameter, repr(written), "a share of whole percent from 0 to 1 is needed, such as 50% or 0.5")


def design_names(written: Sequence[str]) -> list[str]:
    """Designs of texts that hold one or several, or ``all``.

    Examples
    --------
    >>> design_names(["none,lc", "tac:extent=16,aging=1000,lc"])
    ['none', 'lc', 'tac:extent=16,aging=1000']
    """
    found = [each for name in _apart(written) for each in (DESIGNS.names() if name == "all" else [name])]
    if not found:
        raise InvalidParameterError("design", "none", "at least one is needed")
    return list(dict.fromkeys(found))


def part_names(written: Sequence[str]) -> list[str]:
    """Parts of the SSD manager of texts that hold one or several, or ``all``."""
    return list(dict.fromkeys(each for name in _apart(written) for each in (PARTS if name == "all" else [name])))


def is_until_ssd(written: str, parameter: str) -> bool:
    """Whether reads from disk bring more than a page until the SSD is full, and not only until memory is.

    Examples
    --------
    >>> is_until_ssd("ssd", "expansion_until")
    True
    """
    if written not in ("memory", "ssd"):
        raise InvalidParameterError(parameter, repr(written), "memory or ssd is needed")
    return written == "ssd"


def _apart(written: Sequence[str]) -> list[str]:
    return [name.strip() for text in written for name in _BETWEEN.split(text) if name.strip()]

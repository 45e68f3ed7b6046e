"""The page sizes of page formats."""

from __future__ import annotations

from contextlib import suppress

from flashsim.core.errors import InvalidParameterError
from flashsim.storage.layout import check_page_size


def page_sizes(page_format: str) -> list[int]:
    """The powers of two, bytes, that a format has pages of, ascending."""
    sizes = []
    for size in (1 << power for power in range(9, 17)):
        with suppress(InvalidParameterError):
            check_page_size(size, page_format)
            sizes.append(size)
    return sizes

"""Pages of SQL Server, the system of do2012: 8 KiB, of which a header takes 96 bytes, and each row 9 bytes beside its columns.

The 9 are 4 of the row's header, 3 of its bitmap of NULLs, and 2 in the page's table of slots.
"""

from flashsim.core.units import KIB

PAGE = 8 * KIB
_HEADER, _BESIDE = 96, 9


def rows_of_a_page(row: int, fill: int = 100) -> int:
    """Rows of so many bytes in a page that is full to so many percent, at least one."""
    return max(1, (PAGE - _HEADER) // (row + _BESIDE) * fill // 100)

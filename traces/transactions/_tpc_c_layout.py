"""Where TPC-C's tables lie: pages of each, those at the start and those that are still to be created.

Rows of a warehouse and bytes of a row are those of TPC Benchmark C, standard specification, revision 5.11, clause 1.2.1; see `TABLES`.
Pages filled to 80 % hold 20 rows of STOCK and 9 of CUSTOMER, and a warehouse takes 98 MB; full ones hold 25 and 12, and it takes 77 MB.
The 80 % are fitted: 2,000 warehouses then take about the 200 GB that do2012, section 3.4, has for them.

CUSTOMER has an index by last and first name (16 bytes each, clause 1.3.1, and 8 of identifiers), of which only leaves are referenced.
ITEM is read only if that is asked for: its 12 MB do not grow with the warehouses, nothing writes them, and they stay in memory.

Tables follow each other, each in the order of its warehouses.  What grows has more pages behind all tables: the first new page of
ORDER-LINE of each district, one district after the other, then the second of each, and so on; likewise those of ORDER, and then those of
HISTORY, which has no primary key (clause 1.3.1) and grows at one end.  Where no page is left, the oldest that was created is made anew.
NEW-ORDER, from which deliveries take what orders put in, goes round in a district's pages.
"""

import math
from typing import NamedTuple

from traces.transactions._pages import rows_of_a_page

#: Rows of a warehouse, bytes of a row (clause 1.2.1), and whether each district has pages of its own, in the order in which tables lie.
TABLES = {
    "warehouse": (1, 89, False),
    "district": (10, 95, False),
    "customer": (30_000, 655, False),
    "names": (30_000, 40, False),
    "stock": (100_000, 306, False),
    "order": (30_000, 24, True),
    "line": (300_000, 54, True),
    "new_order": (9_000, 8, True),
    "history": (30_000, 46, True),
}
ITEM_ROWS, ITEM_BYTES = 100_000, 82
DISTRICTS = 10
#: Lines of an order: 5 to 15, evenly (clause 2.4.1.3), 10 on average.  In pages, orders lie as if each had 10.
LINES = 10
#: Pages of NEW-ORDER beyond those that its rows at the start fill: its head and its tail.
_ENDS = 2


class Region(NamedTuple):
    """Pages of a table.

    Parameters
    ----------
    first
        The first of them.
    page_rows
        Rows of a page.
    pages
        How many: of the table, or of each district.
    grown
        The first page that is created.
    most
        How many may be created: of HISTORY in all, otherwise by each district.
    """

    first: int
    page_rows: int
    pages: int
    grown: int
    most: int


class Layout(NamedTuple):
    """Of a database: how many of each thing, and the pages of all tables."""

    warehouses: int
    districts: int
    customers: int  # of a district, and its orders at the start
    undelivered: int  # of the orders
    items: int
    pages_at_start: int
    pages: int
    warehouse: Region
    district: Region
    customer: Region
    names: Region
    stock: Region
    order: Region
    line: Region
    new_order: Region
    history: Region
    item: Region


def layout(scale: float, fill: int, growth: float, items_are_read: bool) -> Layout:
    """The layout of so many warehouses.

    Parameters
    ----------
    scale
        Warehouses.  Of a fraction all warehouses have a part of their rows: 0.1 is one with 300 customers a district.
    fill
        Of pages, in percent.
    growth
        Orders for which there is room, over those at the start.
    items_are_read
        Whether ITEM has pages.
    """
    warehouses = math.ceil(scale)
    share = scale / warehouses
    districts, customers = warehouses * DISTRICTS, max(3, round(3000 * share))
    items = max(1, round(ITEM_ROWS * share))
    rows = {name: math.ceil(count * share) if count > DISTRICTS else count for name, (count, _, _) in TABLES.items()}
    rows |= {"customer": customers * DISTRICTS, "names": customers * DISTRICTS, "stock": items}
    regions, end = dict[str, Region](), 0
    for name, (_, width, apart) in TABLES.items():
        each, of_page = (rows[name] // DISTRICTS if apart else rows[name] * warehouses), rows_of_a_page(width, fill)
        pages = -(-each // of_page) + (_ENDS if name == "new_order" else 0)
        regions[name] = Region(end, of_page, pages, 0, 0)
        end += pages * (districts if apart else 1)
    of_page = rows_of_a_page(ITEM_BYTES, fill)
    regions["item"] = Region(end, of_page, -(-items // of_page) if items_are_read else 0, 0, 0)
    at_start = end = end + regions["item"].pages
    for name, apart in {"line": True, "order": True, "history": False}.items():
        most = math.ceil(regions[name].pages * growth * (1 if apart else districts)) + 1
        regions[name] = regions[name]._replace(grown=end, most=most)
        end += most * (districts if apart else 1)
    return Layout(warehouses, districts, customers, max(1, customers * 3 // 10), items, at_start, end, **regions)

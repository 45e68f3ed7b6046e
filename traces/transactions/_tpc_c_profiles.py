"""TPC-C's five transactions as the pages that each references, after the profiles of clauses 2.4 to 2.8.

What an order is about is drawn from a hash of its district and number, so that deliveries and stock levels find it again and nothing of it
is kept: its customer, its lines, and each line's item and supplier.  Of districts only the orders and the deliveries are counted.
"""

from math import log
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from flashsim.core.draws import mix_bits
from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.request import Integers
from flashsim.core.transactions import COUNT, CREATES, FIRST, MARKS, WRITES

DISTRICTS = 10
#: Lines of an order: 5 to 15, evenly (clause 2.4.1.3), 10 on average.  In pages, orders lie as if each had 10.
LINES = 10
KINDS = ("new-order", "payment", "order-status", "delivery", "stock-level")
NEW_ORDER, PAYMENT, ORDER_STATUS, DELIVERY, STOCK_LEVEL = range(5)
#: Columns of a district.
ORDERS, DELIVERED = range(2)
#: Draws of 32 bits for each transaction: its kind, warehouse and district, and its customer's.
KIND, WAREHOUSE, DISTRICT, BY_NAME, LOW_BITS, NUMBER, IS_REMOTE, REMOTE, REMOTE_DISTRICT, AGE = range(10)
WORDS = 10
#: References of a transaction, at most: the 300 lines of 20 orders, and the pages that hold these.
MOST_REFERENCES = 512
#: Out of 100: new orders, payments and each of the others (clause 5.2.4.2), customers by name (2.5.1.2), payments of customers of another
#: warehouse (2.5.1.2), lines that another one supplies (2.4.1.5).
NEW_ORDERS, PAYMENTS, OTHERS = 45, 43, 4
NAMED, REMOTE_PAYMENTS, REMOTE_LINES = 60, 15, 1
#: Orders of which a stock level looks at the items (clause 2.8.2.2).
LATEST = 20
_FEWEST_LINES, _KINDS_OF_LENGTH = 5, 11
#: Customers of a name, on average (clause 4.3.2.3: 3,000 have 1,000 names).
NAMESAKES = 3
_BITS = 32
# Draws of an order.
_CUSTOMER, _LENGTH, _ITEMS = 0, 2, 3


class Region(NamedTuple):
    """Pages of a table."""

    first: int
    page_rows: int
    #: Pages of the table, or of each district.
    pages: int
    #: The first page that is created.
    grown: int
    #: Pages that may be created: of HISTORY in all, otherwise by each district.
    most: int


class PageLayout(NamedTuple):
    """Sizes of a database, and the pages of all tables."""

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


class Constants(NamedTuple):
    """Constants of the draws: the seed, and A and C of NURand (clause 2.1.6) for names, customers and items."""

    key: int
    names: int
    name_shift: int
    customers: int
    customer_shift: int
    items: int
    item_shift: int
    step: int  # orders at the start belong to all customers in turn, this far apart
    back: int


class Database(NamedTuple):
    """The database, and what is drawn of it."""

    #: Where tables lie, and what draws depend on.
    layout: PageLayout
    constants: Constants
    #: Orders of each, and those of them that are delivered, shape (n, 2).
    districts: Integers
    #: The logarithm of each customer's chance that a new order is of somebody else, shape (customers,).
    odds: npt.NDArray[np.float64]


@inlined_kernel
def below(draw: int, bound: int) -> int:
    """A number below a bound from 32 bits."""
    return draw * bound >> _BITS


@inlined_kernel
def is_so(draw: int, percent: int) -> bool:
    """True if an event of this frequency happens."""
    return draw * 100 < percent << _BITS


@inlined_kernel
def nurand(low_bits: int, draw: int, most: int, shift: int, bound: int) -> int:
    """NURand(A, 1, bound) - 1 of clause 2.1.6, from two draws."""
    return ((low_bits & most | below(draw, bound) + 1) + shift) % bound


@inlined_kernel
def draw_of(key: int, number: int) -> int:
    """32 bits that are a function of a key and a number."""
    return mix_bits((key + number) & 0x7FFFFFFF)


@inlined_kernel
def refer(references: Integers, row: int, page: int, marks: int) -> int:
    references[row, FIRST] = page
    references[row, COUNT] = 1
    references[row, MARKS] = marks
    return row + 1


@inlined_kernel
def page_of(region: Region, row: int) -> int:
    """The page of a row of a table that does not grow."""
    return region.first + row // region.page_rows


@inlined_kernel
def page_of_district(region: Region, districts: int, district: int, page: int) -> int:
    """A page of a district, counted from its first one."""
    if page < region.pages:
        return region.first + district * region.pages + page
    return region.grown + (page - region.pages) % region.most * districts + district


@inlined_kernel
def customer_page(layout: PageLayout, district: int, customer: int) -> int:
    return page_of(layout.customer, district * layout.customers + customer)


@inlined_kernel
def order_page(layout: PageLayout, district: int, order: int) -> int:
    return page_of_district(layout.order, layout.districts, district, order // layout.order.page_rows)


@inlined_kernel
def new_order_page(layout: PageLayout, district: int, order: int) -> int:
    page = order // layout.new_order.page_rows % layout.new_order.pages
    return page_of_district(layout.new_order, layout.districts, district, page)


@lean_kernel
def order_key(constants: Constants, district: int, order: int) -> int:
    return draw_of(draw_of(constants.key, district), order)


@lean_kernel
def customer_of(layout: PageLayout, constants: Constants, district: int, order: int) -> int:
    """Customer of an order; of the orders at the start every customer has one (clause 4.3.3.1)."""
    if order < layout.customers:
        return order * constants.back % layout.customers
    key = order_key(constants, district, order)
    low, draw = draw_of(key, _CUSTOMER), draw_of(key, _CUSTOMER + 1)
    return nurand(low, draw, constants.customers, constants.customer_shift, layout.customers)


@lean_kernel
def item_of(layout: PageLayout, constants: Constants, key: int, line: int, order: int) -> int:
    """The item of an order's line; those of the orders at the start are drawn evenly (clause 4.3.3.1)."""
    low, draw = draw_of(key, _ITEMS + 4 * line), draw_of(key, _ITEMS + 4 * line + 1)
    if order < layout.customers:
        return below(draw, layout.items)
    return nurand(low, draw, constants.items, constants.item_shift, layout.items)


@inlined_kernel
def lines_of(key: int) -> int:
    return _FEWEST_LINES + below(draw_of(key, _LENGTH), _KINDS_OF_LENGTH)


@inlined_kernel
def line_page(layout: PageLayout, order: int) -> int:
    """The page of a district's order lines that holds the first one of an order."""
    return order * LINES // layout.line.page_rows


@inlined_kernel
def refer_to_lines(layout: PageLayout, references: Integers, row: int, district: int, first: int, last: int, marks: int) -> int:
    """Reference all pages with lines of some orders that are there already."""
    for page in range(line_page(layout, first), ((last + 1) * LINES - 1) // layout.line.page_rows + 1):
        row = refer(references, row, page_of_district(layout.line, layout.districts, district, page), marks)
    return row


@lean_kernel
def choose_customer(db: Database, words: Integers, district: int) -> int:
    """A customer by number or by name: the one in the middle of a few who share it (clause 2.5.2.2)."""
    layout, constants = db.layout, db.constants
    low, draw = int(words[LOW_BITS]), int(words[NUMBER])
    if not is_so(int(words[BY_NAME]), NAMED):
        return nurand(low, draw, constants.customers, constants.customer_shift, layout.customers)
    names = layout.customers // NAMESAKES
    name = nurand(low, draw, constants.names, constants.name_shift, names)
    return name + names * below(draw_of(draw_of(constants.key, district), -1 - name), NAMESAKES)


@lean_kernel
def refer_to_customer(layout: PageLayout, references: Integers, row: int, words: Integers, district: int, customer: int, marks: int) -> int:
    """Reference a customer's page, and before it a leaf of the index if the name was given."""
    if is_so(int(words[BY_NAME]), NAMED):
        name = customer % (layout.customers // NAMESAKES)
        row = refer(references, row, page_of(layout.names, district * layout.customers + name * NAMESAKES), 0)
    return refer(references, row, customer_page(layout, district, customer), marks)


@lean_kernel
def new_order(db: Database, references: Integers, row: int, district: int) -> int:
    """Clause 2.4.2.2: read the warehouse and the customer, number the order, insert it, take its items from stock, insert its lines."""
    layout, constants, districts = db.layout, db.constants, db.districts
    order, home = int(districts[district, ORDERS]), district // DISTRICTS
    key = order_key(constants, district, order)
    districts[district, ORDERS] = order + 1
    row = refer(references, row, page_of(layout.warehouse, home), 0)
    row = refer(references, row, page_of(layout.district, district), WRITES)
    customer = customer_of(layout, constants, district, order)
    row = refer(references, row, customer_page(layout, district, customer), 0)
    is_new = order // layout.order.page_rows >= layout.order.pages and order % layout.order.page_rows == 0
    row = refer(references, row, order_page(layout, district, order), WRITES | CREATES if is_new else WRITES)
    row = refer(references, row, new_order_page(layout, district, order), WRITES)
    for line in range(lines_of(key)):
        item, supplier = item_of(layout, constants, key, line, order), home
        if layout.warehouses > 1 and is_so(draw_of(key, _ITEMS + 4 * line + 2), REMOTE_LINES):
            supplier = another(home, draw_of(key, _ITEMS + 4 * line + 3), layout.warehouses)
        if layout.item.pages:
            row = refer(references, row, page_of(layout.item, item), 0)
        row = refer(references, row, page_of(layout.stock, supplier * layout.items + item), WRITES)
    first, last = line_page(layout, order), ((order + 1) * LINES - 1) // layout.line.page_rows
    for page in range(first, last + 1):
        is_new = page >= layout.line.pages and page * layout.line.page_rows >= order * LINES
        place = page_of_district(layout.line, layout.districts, district, page)
        row = refer(references, row, place, WRITES | CREATES if is_new else WRITES)
    return row


@inlined_kernel
def another(home: int, draw: int, warehouses: int) -> int:
    return (home + 1 + below(draw, warehouses - 1)) % warehouses


@lean_kernel
def payment(db: Database, references: Integers, row: int, words: Integers, district: int, paid: int) -> int:
    """Clause 2.5.2.2: add to what warehouse, district and customer have paid, and to the history."""
    layout = db.layout
    home = district // DISTRICTS
    row = refer(references, row, page_of(layout.warehouse, home), WRITES)
    row = refer(references, row, page_of(layout.district, district), WRITES)
    if layout.warehouses > 1 and is_so(int(words[IS_REMOTE]), REMOTE_PAYMENTS):
        home = another(home, int(words[REMOTE]), layout.warehouses)
        district = home * DISTRICTS + below(int(words[REMOTE_DISTRICT]), DISTRICTS)
    row = refer_to_customer(layout, references, row, words, district, choose_customer(db, words, district), WRITES)
    history = layout.history
    page = history.grown + paid // history.page_rows % history.most
    return refer(references, row, page, WRITES | CREATES if paid % history.page_rows == 0 else WRITES)


@lean_kernel
def order_status(db: Database, references: Integers, row: int, words: Integers, district: int) -> int:
    """Clause 2.6.2.2: read a customer, the customer's last order, and its lines.

    The number of later orders of the district is drawn: each was the customer's with the same chance.
    """
    layout = db.layout
    customer = choose_customer(db, words, district)
    row = refer_to_customer(layout, references, row, words, district, customer, 0)
    orders = int(db.districts[district, ORDERS])
    age = int(log((int(words[AGE]) + 1) / (1 << _BITS)) / db.odds[customer])
    order = orders - 1 - age
    if order < layout.customers:
        order = customer * db.constants.step % layout.customers
    row = refer(references, row, order_page(layout, district, order), 0)
    return refer_to_lines(layout, references, row, district, order, order, 0)


@lean_kernel
def delivery(db: Database, references: Integers, row: int, home: int) -> int:
    """Clause 2.7.4.2: a district's oldest order that is not delivered leaves NEW-ORDER; it, its lines and its customer change."""
    layout, constants, districts = db.layout, db.constants, db.districts
    for district in range(home * DISTRICTS, (home + 1) * DISTRICTS):
        order = int(districts[district, DELIVERED])
        if order == districts[district, ORDERS]:
            continue
        districts[district, DELIVERED] = order + 1
        row = refer(references, row, new_order_page(layout, district, order), WRITES)
        row = refer(references, row, order_page(layout, district, order), WRITES)
        row = refer_to_lines(layout, references, row, district, order, order, WRITES)
        customer = customer_of(layout, constants, district, order)
        row = refer(references, row, customer_page(layout, district, customer), WRITES)
    return row


@lean_kernel
def stock_level(db: Database, references: Integers, row: int, district: int) -> int:
    """Clause 2.8.2.2: read the lines of the district's last 20 orders, and the stock of each item in them."""
    layout, constants, districts = db.layout, db.constants, db.districts
    row = refer(references, row, page_of(layout.district, district), 0)
    last = int(districts[district, ORDERS]) - 1
    first, home = max(0, last - LATEST + 1), district // DISTRICTS
    row = refer_to_lines(layout, references, row, district, first, last, 0)
    for order in range(first, last + 1):
        key = order_key(constants, district, order)
        for line in range(lines_of(key)):
            item = item_of(layout, constants, key, line, order)
            row = refer(references, row, page_of(layout.stock, home * layout.items + item), 0)
    return row


@lean_kernel
def make(db: Database, words: Integers, first: int, references: Integers, ends: Integers, kinds: Integers, paid: int) -> tuple[int, int]:
    """Make transactions from number `first` on, until all are made or there may be no room; returns how far it came, and all payments.

    `words` are the draws of each transaction, shape (n, WORDS); `references`, `ends` and `kinds` have room for
    `flashsim.core.transactions.Transactions`; `paid` is the number of payments so far.
    """
    row = 0
    for number in range(first, words.shape[0]):
        if row + MOST_REFERENCES > references.shape[0]:
            return number, paid
        mine = words[number]
        home = below(int(mine[WAREHOUSE]), db.layout.warehouses)
        district = home * DISTRICTS + below(int(mine[DISTRICT]), DISTRICTS)
        place = below(int(mine[KIND]), 100)
        kind = ORDER_STATUS + (place - NEW_ORDERS - PAYMENTS) // OTHERS
        if place < NEW_ORDERS:
            kind = NEW_ORDER
            row = new_order(db, references, row, district)
        elif place < NEW_ORDERS + PAYMENTS:
            kind = PAYMENT
            row = payment(db, references, row, mine, district, paid)
            paid += 1
        elif kind == ORDER_STATUS:
            row = order_status(db, references, row, mine, district)
        elif kind == DELIVERY:
            row = delivery(db, references, row, home)
        else:
            row = stock_level(db, references, row, district)
        ends[number - first] = row
        kinds[number - first] = kind
    return words.shape[0], paid

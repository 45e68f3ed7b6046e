"""The parameters of a drive as one row of numbers, for kernels: the same fields, in ns, sectors, and millionths of shares."""

import numpy as np

from flashsim.core.request import Integers
from flashsim.hdd.description import BOUNDS, HEAD_ORDERS
from flashsim.hdd.parameters import HddParameters
from flashsim.hdd.state.terms import CONTROL_COLUMNS, FIELDS, SHARE_UNIT

_SIZES = ("read_ahead", "read_ahead_least", "segment_size", "write_behind", "command_size")
_SHARES = ("read_start", "write_start")
_NAMES = {"head_order": HEAD_ORDERS, "read_ahead_bound": BOUNDS}


def control_row(parameters: HddParameters) -> Integers:
    """The row, shape (CONTROL_COLUMNS,), in the order of `terms.FIELDS`."""
    values = {name: getattr(parameters, name) for name in FIELDS}
    for name in _SIZES:
        values[name] //= parameters.sector_size
    for name in _SHARES:
        values[name] = round(values[name] * SHARE_UNIT)
    for name, known in _NAMES.items():
        values[name] = known.index(values[name])
    values["bus_read"] = max(parameters.bus_read, parameters.bulk_transfer)
    values["bus_write"] = max(parameters.bus_write, parameters.bulk_transfer)
    row = np.array([int(values[name]) for name in FIELDS], np.int64)
    assert len(row) == CONTROL_COLUMNS
    return row

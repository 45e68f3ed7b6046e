"""libCacheSim's oracleGeneral (`traces.format._records`): each record is a reference to its object, of whatever size above 0.

An object of 2**63 and more is taken for the negative number that has the same bits.
"""

from pathlib import Path

import numpy as np

from flashsim.core.transactions import ReferenceBatches, References
from traces.format import _records
from traces.page_format.base import PageExample

TITLE = "libCacheSim oracleGeneral (binary)"
EXAMPLE = PageExample(np.array([(5, 100, 4096, 2), (6, 2**64 - 3, 512, -1), (9, 100, 4096, -1)], _records.ORACLE).tobytes(), [100, -3, 100])
recognise = _records.is_oracle


def references(path: Path) -> ReferenceBatches:
    """The object of each record; nothing is known of writes."""
    for _, records in _records.read_oracle(path):
        yield References(records["object"].astype(np.uint64).view(np.int64))

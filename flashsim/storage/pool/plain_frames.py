"""References to pages in a buffer pool's frames by a policy in its plain form: what `flashsim.storage.pool.frames` does, slowly."""

from __future__ import annotations

import numpy as np

from flashsim.core.replacement import DIRTY, FLAGS, KNOWN, NOW, PINNED, RESIDENT, USED, Numbers, PoolState
from flashsim.core.request import Integers
from flashsim.storage.pool.frames import Books, leave, note, settle
from flashsim.storage.pool.plain import PlainPool
from flashsim.storage.pool.reference import TOOK_FREE, WRITE_BACK
from flashsim.storage.pool.simulation import Writes


def exchange_plainly(
    plain: PlainPool,
    pool: PoolState,
    books: Books,
    rows: Numbers,
    writes: Writes,
    next_uses: Numbers,
    pin: bool,
    made: Integers,
    after: Integers,
) -> int:
    """As `flashsim.storage.pool.frames.exchange`; the policy sees what the pool's flags say.

    Raises
    ------
    FlashsimError
        The policy broke its contract.
    """
    flags, entered = pool.pages[:, FLAGS], 0
    plain.held = set(np.flatnonzero(flags & PINNED).tolist())
    plain.resident = {row: bool(flags[row] & DIRTY) for row in plain.resident}
    for index, row in enumerate(rows.tolist()):
        write, stored = bool(len(writes) and writes[index]), int(books.lsns[row])
        outcome = plain.refer(row, write, int(next_uses[index]) if len(next_uses) else 0)
        if outcome == TOOK_FREE:
            pool.numbers[USED] += 1
        elif outcome > TOOK_FREE:
            flags[outcome & (WRITE_BACK - 1)] &= ~(RESIDENT | DIRTY)
        flags[row] |= RESIDENT | KNOWN | (DIRTY if write else 0)
        settle(books, row, write, outcome)
        entered = note(books, row, outcome, stored, made, entered)
        if pin:
            flags[row] |= PINNED
            plain.held.add(row)
        after[index] = entered
    pool.numbers[NOW] = plain.now
    return entered


def drop_plainly(plain: PlainPool, pool: PoolState, books: Books, rows: Numbers) -> None:
    """As `flashsim.storage.pool.frames.drop`."""
    for row in rows.tolist():
        leave(pool, books, row)
        plain.drop(row)

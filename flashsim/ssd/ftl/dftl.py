"""Demand-based page mapping (DFTL): the map is on flash, and memory holds the entries in use (Gupta, Kim, Urgaonkar, ASPLOS 2009).

`map_cache` bytes hold entries of 8 bytes, a logical and a flash page each, and the one used longest ago leaves first; the directory, where
each translation page lies, is always in memory.  An entry that is not there is fetched with its translation page.  An entry that leaves and
differs from flash is written back, together with all others of its translation page that differ.  A page that garbage collection moves
changes its entry in memory if it is there; otherwise its translation page is written, once for all pages of a victim (or of a slice).

As in the paper translation pages have blocks of their own, a few in each plane, which are cleaned apart (`flashsim.ssd.ftl._stored_map`).
Two things differ.  The paper divides its cache into a tried and a new segment; here it is one.  And where pages are looked up in order, the
entries that follow on the same translation page come in with the one that is missed, as many as came in order; the paper brings in one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from flashsim.core.errors import InvalidParameterError
from flashsim.core.kernel import lean_kernel
from flashsim.core.policies import Policies
from flashsim.core.request import READ, TRIM, Integers
from flashsim.core.spans import MAP
from flashsim.ssd.ftl import _stored_map as stored
from flashsim.ssd.ftl._stored_map import COVERED, ENTRY_BYTES, FETCHED, STORE_ROWS
from flashsim.ssd.gc.base import rounds_of
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.state import flash_array, pools
from flashsim.ssd.state.collection import make_room, write_page
from flashsim.ssd.state.flash import Flash
from flashsim.ssd.state.flash_array import lookup
from flashsim.ssd.state.geometry import collection_rows, moves_of_a_write, pool_of_block
from flashsim.ssd.state.recovery import rebuild_pools, restore_reserve

if TYPE_CHECKING:
    from flashsim.ssd.state.drive_state import DriveState

USES = ("map_cache",)
STORED_BYTES = 4  #: Bytes of an entry in a translation page: the number of a flash page.


@lean_kernel
def look_up(flash: Flash, policies: Policies, page: int) -> int:
    """Plan what it takes to know where a page is; the number of rows.  ``own[FETCHED]`` is the row that fetches it, or -1."""
    stored.note_run(flash.own, page)
    flash.own[FETCHED] = -1
    entry = stored.find(flash.own, page)
    if entry:
        flash.own[stored.HITS] += 1
        stored.leave_order(flash.own, entry)
        stored.make_newest(flash.own, entry)
        return 0
    flash.own[stored.MISSES] += 1
    row = 0
    if stored.is_full_of_dirt(flash.own):
        leaving = flash.own[stored.entry_field(stored.oldest(flash.own), stored.PAGE)]
        row = stored.store_map_page(flash, policies, row, leaving // flash.own[COVERED])
    number = flash.control.logical_pages + page // flash.own[COVERED]
    if lookup(flash.mapping, number) >= 0:
        flash.own[FETCHED] = row
        row = flash_array.plan_row(flash.plan, row, flash_array.FETCH_PAGE, lookup(flash.mapping, number), -1, number, 0, -1, MAP, -1)
    if not stored.is_full_of_dirt(flash.own):  # it is still on a drive that is read-only
        stored.bring_in_run(flash.own, page, flash.control.logical_pages)
    return row


@lean_kernel
def note_change(own: Integers, page: int) -> None:
    """The map changed at a page that was just looked up."""
    entry = stored.find(own, page)
    if entry:
        stored.make_dirty(own, entry)


@lean_kernel
def follow_moves(flash: Flash, policies: Policies, first: int, row: int) -> int:
    """Change the entries of pages that the rows from `first` on move, and plan to write what is not in memory; the number of rows."""
    for at in range(first, row):
        if flash.plan[at].kind in (flash_array.MOVE_PAGE, flash_array.STORE_PAGE):
            entry = stored.find(flash.own, flash.plan[at].logical)
            if entry:
                stored.make_dirty(flash.own, entry)
            else:
                stored.make_stale(flash.own, flash.plan[at].logical // flash.own[COVERED])
    number = stored.next_stale(flash.own)
    while number >= 0:
        row = stored.store_map_page(flash, policies, row, number)
        number = stored.next_stale(flash.own)
    return row


@lean_kernel
def translate(operation: int, page: int, partial: int, flash: Flash, policies: Policies) -> int:
    row = look_up(flash, policies, page)
    if operation == READ:
        return pools.plan_read(flash, row, page, flash.own[FETCHED])
    if operation == TRIM:
        if pools.drop_page(flash, page) >= 0:
            note_change(flash.own, page)
        return row
    pool = pools.next_pool(flash, page)
    looked_up = row
    row = make_room(flash, policies, row, pool)
    if row < 0:
        return flash_array.BAD_VICTIM
    row = follow_moves(flash, policies, looked_up, row)
    row = write_page(flash, policies, row, pool, page, partial, flash.own[FETCHED])
    note_change(flash.own, page)
    return row


def entries_per_page(parameters: SsdParameters) -> int:
    """Logical pages whose entries a translation page holds."""
    return parameters.page_size // STORED_BYTES


def map_pages(parameters: SsdParameters) -> int:
    return -(-parameters.logical_pages // entries_per_page(parameters))


def map_blocks(parameters: SsdParameters) -> int:
    return stored.blocks_for(map_pages(parameters), parameters.pools, parameters.pages_per_block)


def limit_left(parameters: SsdParameters) -> int:
    """Valid pages, of the host and of the map, that a plane may hold when all its blocks for translation pages count as full."""
    return parameters.pool_limit - map_blocks(parameters) * parameters.pages_per_block


def check(parameters: SsdParameters) -> None:
    """Refuse a cache without an entry, and a drive too small for its pages and its map.

    A plane takes a write while fewer than `limit_left` of its pages are valid.  Then its pages outside the blocks for translation pages are
    below the limit of docs/decisions/0006 for the blocks that are left, and since all limits exceed the pages of host and map, some plane
    takes the write.
    """
    if parameters.map_cache < ENTRY_BYTES:
        raise InvalidParameterError("map_cache", parameters.map_cache, f"'dftl' holds entries of {ENTRY_BYTES} B and needs one at least")
    of_map, blocks_left = map_pages(parameters), limit_left(parameters)
    together = "beside the blocks for translation pages"
    if parameters.logical_pages + of_map >= blocks_left * parameters.pools:
        room = max(0, blocks_left * parameters.pools - of_map - 1) * parameters.page_size
        raise InvalidParameterError("capacity", parameters.capacity, f"{together} the drive holds {room}")
    in_a_plane = -(-parameters.logical_pages // parameters.pools) + -(-of_map // parameters.pools)
    if parameters.allocation == "static" and in_a_plane >= blocks_left:
        bound = f"with static allocation a plane takes {in_a_plane} pages, and {together} it can hold {blocks_left - 1}"
        raise InvalidParameterError("capacity", parameters.capacity, bound)
    blocks = parameters.good_blocks - map_blocks(parameters)
    if parameters.gc_stop >= blocks:
        raise InvalidParameterError("gc_stop", parameters.gc_stop, f"{together} a plane has {blocks} blocks")


def plan_rows(parameters: SsdParameters) -> int:
    """The most rows of a plan: a look-up, collection and write, and the translation pages of all pages that collection moves."""
    rounds = rounds_of(parameters.gc)
    stores = min(map_pages(parameters), moves_of_a_write(parameters, rounds))
    return STORE_ROWS + 1 + collection_rows(parameters, rounds) + stores * STORE_ROWS


def own_table(parameters: SsdParameters) -> Integers:
    """An empty cache, of no more entries than there are pages."""
    entries = min(parameters.map_cache // ENTRY_BYTES, parameters.logical_pages)
    blocks = map_blocks(parameters)
    return stored.empty_cache(entries, entries_per_page(parameters), map_pages(parameters), parameters.pools, blocks)


def prepare(state: DriveState) -> None:
    state.control.pool_limit = limit_left(state.parameters)
    stored.claim_region(state.flash)


def recover(state: DriveState) -> None:
    """Start with an empty cache, and write the whole map, rebuilt from the spare areas, to fresh translation pages, in no time.

    So none is older than the map.  A read-only drive cannot write them: they stay where they are, the map in memory is right all the same.
    """
    control, mapping, own = state.control, state.mapping, state.own
    stored.forget_entries(own)
    if not control.read_only:
        clear_map_blocks(state)
    rebuild_pools(state)
    if control.read_only:
        return
    stored.claim_region(state.flash)
    host_pages = state.parameters.logical_pages
    for number in np.unique(np.flatnonzero(mapping[:host_pages]) // own[COVERED]).tolist():
        page, region = host_pages + number, stored.region_of(own, number % state.parameters.pools)
        place = stored.place_map_page(state.flash, region, page)
        flash_array.end_program(state.flash, place, -1, page, int(control.sequence - control.id_base))
    restore_reserve(state)


def clear_map_blocks(state: DriveState) -> None:
    """Unmap the translation pages and erase their blocks, which hold nothing else, and those that hold torn pages alone.

    The latter may have been blocks for translation pages as well, and a plane may have no other block free for these.
    """
    per_block, blocks, host_pages = state.parameters.pages_per_block, state.blocks, state.parameters.logical_pages
    of_map = (state.spare > 0) & (state.pages.spare_owner > host_pages)
    mapped = state.mapping[host_pages:]
    state.pages.owner[mapped[mapped > 0] - 1] = 0
    mapped[:] = 0
    is_torn = (blocks.written > 0) & (state.spare <= 0).reshape(-1, per_block).all(axis=1)
    for block in np.flatnonzero(of_map.reshape(-1, per_block).any(axis=1) | is_torn).tolist():
        pool = pool_of_block(state.control, block)
        state.pools.pool_valid[pools.collector_of(state.control, pool)] -= blocks.valid[block]
        blocks.valid[block] = 0
        if blocks.state[block] != flash_array.RETIRED_BLOCK:
            flash_array.end_erase(state.flash, block)
            blocks.cycles[block] += 1  # no block wears out meanwhile: it retires when it is erased next
            pools.free_block(state.flash, block)


def statistics(state: DriveState) -> dict[str, Any]:
    """Look-ups that found their entry in memory or not, and translation pages stored but not moved, all since the drive was made.

    Loading is included.  Effective over-provisioning leaves out the blocks for translation pages, and is over the logical pages.
    """
    parameters = state.parameters
    room = parameters.usable_pages - parameters.pools * map_blocks(parameters) * parameters.pages_per_block
    return {
        "map_cache_hits": int(state.own[stored.HITS]),
        "map_cache_misses": int(state.own[stored.MISSES]),
        "map_stores": int(state.own[stored.STORES]),
        "effective_overprovisioning": room / parameters.logical_pages - 1,
    }

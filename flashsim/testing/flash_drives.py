"""Small drives and tie-heavy workloads for the tests of the SSD."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import numpy as np

from flashsim.core.errors import ReadOnlyDeviceError
from flashsim.core.host_queue import one_command_each
from flashsim.core.parameters import build
from flashsim.core.request import FLUSH, FORCE_UNIT_ACCESS, READ, SECTOR, TRIM, WRITE, Completions, Integers, Requests, make_requests
from flashsim.core.rng import generator
from flashsim.core.units import SECONDS
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.ftl import dftl
from flashsim.ssd.ftl.base import FAMILY as FTL_FAMILY
from flashsim.ssd.gc.base import FAMILY as GC_FAMILY
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.ssd.state import flash_array
from flashsim.ssd.wear.base import FAMILY as WEAR_FAMILY

Model = SsdEngine | SsdSpecification
PAGE = 2048
#: Every duration is a multiple of 10 ns (a page over a channel or the link takes 10), so that events fall together all the time.
TIES: dict[str, Any] = {
    "capacity": 40 * PAGE, "page_size": PAGE, "pages_per_block": 4, "blocks_per_plane": 8, "planes_per_die": 1, "dies_per_package": 1,
    "packages_per_channel": 1, "channels": 2, "read": 20, "program": 40, "erase": 100, "channel_rate": PAGE * 10**8,
    "link_read_rate": PAGE * 10**8, "link_write_rate": PAGE * 10**8, "read_latency": 40, "write_latency": 60, "queue_depth": 8,
    "gc_reserve": 2,
}  # fmt: skip


def drive(**changes: Any) -> SsdParameters:
    """A tiny drive; `changes` replace values of TIES."""
    return build(SsdParameters, {**TIES, **changes})


#: Values of a drive whose reads interrupt nothing.
UNINTERRUPTED: dict[str, Any] = {
    "suspend": "none", "suspend_overhead": 0, "suspend_stop": 0, "suspend_progress": 0, "program_step": 0, "program_long_step": 0,
    "program_long_share": 0.0, "erase_step": 0,
}  # fmt: skip


def random_drive(seed: int) -> SsdParameters:
    """A drive of random geometry and policy whose blocks are so few that garbage collection is always at work."""
    random = generator(seed, "drive")
    pages_per_block, blocks, reserve = (int(random.integers(*bounds)) for bounds in ((2, 7), (4, 10), (2, 4)))
    channels, packages, dies = (int(random.integers(1, 4)) for _ in range(3))
    planes, streams = (int(random.integers(1, 3)) for _ in range(2))
    slicing, shared = (bool(random.random() < 0.3) for _ in range(2))
    reserve = max(reserve, 1 + streams + slicing)
    blocks += reserve + streams
    spares = int(random.integers(0, 3))
    pools = channels * packages * dies * planes
    limit = pools * (blocks - reserve - streams + (not shared)) * pages_per_block
    allocation = str(random.choice(["round-robin", "static", "dynamic"]))
    room = limit - pools if allocation == "static" else limit
    priority = bool(random.random() < 0.5)
    endurance, buffer = int(random.choice([0, 0, 0, 30])), int(random.choice([0, 1, 2, 5, 12]))
    buffer = 0 if endurance else buffer
    parameters = drive(
        write_buffer=buffer * PAGE, write_buffer_mode=str(random.choice(["write-back", "write-back", "write-through"])),
        write_buffer_threshold=float(random.choice([0, 0.3, 0.5, 1])), power_protected=bool(buffer and random.random() < 0.5),
        read_priority=priority, suspend=(suspend := str(random.choice(["none", "program", "erase", "both"])) if priority else "none"),
        suspend_overhead=int(random.choice([0, 10])) * (suspend != "none"), multi_plane=bool(random.random() < 0.5),
        planes_per_die=planes, gc_streams=streams, gc_slicing=slicing, gc_pool="shared" if shared else "die",
        gc_copyback=bool(not shared and random.random() < 0.3), gc_stop=int(random.choice([0, reserve + 1])),
        wear=str(random.choice(WEAR_FAMILY.names())), wear_gap=int(random.integers(1, 4)), allocation=allocation,
        allocation_order="".join(random.permutation(list("CWDP"))), spare_blocks=spares,
        factory_bad_blocks=int(random.integers(0, spares + 1)), endurance=endurance, endurance_spread=0.2,
        capacity=max(1, int(room * random.uniform(0.5, 1)) - 1) * PAGE, pages_per_block=pages_per_block, blocks_per_plane=blocks + spares,
        gc_reserve=reserve, channels=channels, packages_per_channel=packages, dies_per_package=dies,
        queue_depth=int(random.choice([1, 2, 8, 32, 64])), erase=int(random.choice([10, 100, 1000])),
        link_write_rate=PAGE * 10**8 // int(random.choice([1, 1, 4])), gc=str(random.choice(GC_FAMILY.names())),
        gc_choices=int(random.integers(1, 4)), queues=int(random.integers(1, 4)),
    )  # fmt: skip
    if not buffer and generator(seed, "continuation").random() < 0.6:
        limit = int(generator(seed, "continuation limit").integers(1, 7)) * PAGE + 512
        parameters = replace(parameters, continuation_latency=10 + 10 * (seed % 3), continuation_limit=limit)
    if seed % 5 == 0 and not endurance and (not buffer or parameters.write_buffer_mode == "write-through"):
        parameters = replace(
            parameters, write_buffer=max(buffer, 1 + seed % 3) * PAGE, write_buffer_mode="coalescing", power_protected=False
        )
    if seed % 2:
        times = generator(seed, "commands").choice([0, 10, 40, 100], 4)
        names = ("read_submission", "write_submission", "link_read_command", "link_write_command")
        parameters = replace(parameters, **dict(zip(names, times.tolist(), strict=True)))
    if parameters.suspend != "none":
        parameters = with_steps(seed, parameters)
    slots = generator(seed, "slots")
    if slots.random() < 0.4:
        size, order = int(slots.choice([512, PAGE, 4096])), str(slots.choice(["turns", "arrival"]))
        parameters = replace(parameters, command_slots=int(slots.integers(1, 12)), command_slot=size, slot_order=order)
    reads, programs = (bool(random.random() < 0.6) for _ in range(2))
    plain = not parameters.multi_plane and parameters.suspend == "none"
    return replace(parameters, cache_read=plain and reads, cache_program=plain and programs)


def with_pace(seed: int, parameters: SsdParameters) -> SsdParameters:
    """A drive like the one given that paces writes while it collects, if it can and the seed says so."""
    random = generator(seed, "pace")
    if not parameters.buffer_pages or parameters.write_buffer_mode != "write-back" or random.random() < 0.2:
        return parameters
    times = 10 * random.integers(3, [60, 60])  # of a page
    rate, floor = (PAGE * SECONDS // int(time) for time in times)
    return replace(
        parameters, collection_rate=rate, collection_debt=int(random.choice([1, 3, 10])) * PAGE,
        collection_share=float(random.choice([0.2, 0.5, 0.9, 1])), collection_floor=floor * int(random.choice([0, 1])),
    )  # fmt: skip


def with_steps(seed: int, parameters: SsdParameters) -> SsdParameters:
    """A drive like the one given whose reads interrupt programs, erases or both, in steps of one length or two."""
    random = generator(seed, "steps")
    step, longer = 10 * int(random.integers(1, 4)), int(random.choice([0, 10, 20]))
    suspend = str(random.choice(["program", "erase", "both"])) if parameters.suspend == "none" else parameters.suspend
    programs: dict[str, Any] = {
        "program_step": step,
        "program_long_step": longer and step + longer,
        "program_long_share": 0.4 * (longer > 0),
    }
    return replace(
        parameters, read_priority=True, suspend=suspend, **(programs if suspend != "erase" else {}),
        erase_step=int(random.choice([0, 10, 30, 200])) * (suspend != "program"), suspend_stop=int(random.choice([0, 0, 10])),
        suspend_progress=int(random.choice([0, 10, 30])), cache_read=False, cache_program=False,
    )  # fmt: skip


def drive_for(ftl: str, parameters: SsdParameters) -> SsdParameters:
    """A drive like the one given, as that layer, a file perhaps, can work with: with the blocks it takes."""
    if "map_cache" in (uses := FTL_FAMILY.load(ftl).USES):  # with a quarter of the map in memory
        blocks = parameters.blocks_per_plane + dftl.map_blocks(parameters) + 2
        parameters = replace(parameters, ftl=ftl, map_cache=8 * (1 + parameters.logical_pages // 4), blocks_per_plane=blocks)
        return with_pace(parameters.capacity, parameters)
    if FTL_FAMILY.load(ftl).COLLECTS:
        return with_pace(parameters.capacity, replace(parameters, ftl=ftl))
    logs = 1 + parameters.gc_choices if "log_blocks" in uses else 0  # no policy draws blocks here, so the number is free to say how many
    pages = -(-parameters.logical_pages // parameters.pools)
    data = -(-pages // parameters.pages_per_block)
    return replace(
        parameters, ftl=ftl, gc="none", gc_pool="die", gc_streams=1, gc_slicing=False, gc_stop=0, allocation="static", log_blocks=logs,
        wear="none" if parameters.wear == "none" else "dynamic",
        blocks_per_plane=data + max(1, logs) + parameters.gc_reserve + parameters.spare_blocks,
    )  # fmt: skip


def random_workload(seed: int, parameters: SsdParameters, count: int) -> tuple[Requests, Integers]:
    """Requests of all kinds, 1 to 64 pages or some sectors, some waiting for others, of several streams; arrivals in multiples of 10 ns."""
    random = generator(seed, "workload")
    sectors, per_page = parameters.capacity // SECTOR, PAGE // SECTOR
    longest = min(64 * per_page, sectors) if random.random() < 0.3 else min(4 * per_page, sectors)
    length = random.integers(1, longest + 1, count)
    offset = random.integers(0, sectors, count)
    whole = random.random(count) < random.choice([0.5, 0.9])
    length = np.where(whole, -(-length // per_page) * per_page, length)
    offset = np.minimum(np.where(whole, offset // per_page * per_page, offset), sectors - length)
    operations = random.choice([READ, WRITE, TRIM, FLUSH], count, p=[0.3, 0.6, 0.07, 0.03])
    if parameters.continuation_limit:
        offset, length = continue_half(seed, parameters, operations, offset, length)
    requests = make_requests(operations, offset * SECTOR, length * SECTOR)
    requests["dependency"] = np.where(random.random(count) < 0.3, random.integers(-1, np.arange(count)), -1)
    requests["flags"] = np.where(random.random(count) < random.choice([0, 0.2]), FORCE_UNIT_ACCESS, 0)
    requests["think"] = 10 * random.integers(0, 4, count)
    arrivals = 10 * random.integers(0, 1 + count * int(random.choice([0, 2, 10])), count)
    requests["stream"] = random.integers(0, 6, count)
    return requests, arrivals


def continue_half(
    seed: int, parameters: SsdParameters, operations: Integers, offset: Integers, length: Integers
) -> tuple[Integers, Integers]:
    """Offsets and lengths, in sectors, of requests of which half are short and begin where the last one of their operation ended."""
    random, offset, length = generator(seed, "continued"), offset.copy(), length.copy()
    sectors, most = parameters.capacity // SECTOR, parameters.continuation_pages * parameters.sectors_per_unit
    ends: dict[int, int] = {}
    for at, operation in enumerate(operations.tolist()):
        goes_on, short = ends.get(operation, sectors), min(int(length[at]), most)
        if random.random() < 0.5 and goes_on + short <= sectors:
            offset[at], length[at] = goes_on, short
        ends[operation] = int(offset[at] + length[at])
    return offset, length


def serve_all(model: Model, requests: Requests, at: int | Integers = 0) -> Completions:
    """All completions, in their order, of requests that are not split; a drive that wears out meanwhile serves the reads."""
    model.submit(requests, one_command_each(requests), at)
    parts = []
    while model.outstanding:
        with contextlib.suppress(ReadOnlyDeviceError):  # said once for each call that meets refused writes
            parts.append(model.advance(every=True))
    parts.append(model.advance(every=True))
    return np.concatenate(parts)


def check_invariants(model: Model) -> None:
    """Check the invariants of an idle drive's map and blocks."""
    state, per_block = model.state, model.parameters.slots_per_block
    group = np.where(model.state.blocks.slc, model.parameters.units, model.parameters.group)
    mapped = state.mapping[state.mapping > 0] - 1
    assert len(np.unique(mapped)) == len(mapped)  # injective
    owners = np.flatnonzero(state.mapping)
    assert np.array_equal(state.pages[mapped].owner - 1, owners)
    assert np.count_nonzero(state.pages.owner) == len(owners)
    assert np.array_equal(state.pages[mapped].spare_owner - 1, owners)  # what the spare area says
    assert (state.spare[mapped] > 0).all()
    blocks = state.blocks
    used = (state.spare != 0).reshape(-1, per_block)
    # Filled up to WRITTEN; layers that collect pass no page over: free, valid and invalid pages make up the whole.
    filled = np.where(used, np.arange(1, per_block + 1), 0).max(axis=1)
    assert np.array_equal(blocks.written, -(-filled // group) * group)
    if model.parameters.gc != "none" and model.parameters.group == 1:
        assert np.array_equal(used.sum(axis=1), blocks.written)
    assert np.array_equal(np.bincount(mapped // per_block, minlength=len(blocks)), blocks.valid)
    pools, shared = model.parameters.pools, model.parameters.gc_pool == "shared"
    state_of = blocks.state.reshape(pools, -1)
    victims = state.pools.victim[state.pools.victim >= 0]  # being emptied
    assert (blocks.state[victims] == flash_array.FREE_BLOCK).all()
    emptied = np.bincount(victims // model.parameters.blocks_per_plane, minlength=pools)
    streams = np.delete(state.active, flash_array.SLC_STREAM, axis=1).T
    assert np.array_equal((state_of == flash_array.ACTIVE_BLOCK).sum(axis=1), (streams >= 0).sum(axis=0))  # active blocks, as known
    assert np.array_equal((state_of == flash_array.FREE_BLOCK).sum(axis=1), state.pools.free + emptied)  # free blocks, as counted
    assert np.array_equal((state_of == flash_array.SPARE_BLOCK).sum(axis=1), state.pools.spares)
    room = np.where(streams >= 0, per_block - blocks.written[streams], 0).sum(axis=0)
    valid = blocks.valid.reshape(pools, -1).sum(axis=1)
    for told, counted in ((state.pools.free_pages, state.pools.free * per_block + room), (state.pools.pool_valid, valid)):
        assert np.array_equal(told, np.where(np.arange(pools) == 0, counted.sum(), 0) if shared else counted)
    if not state.control.read_only:
        folded = state.control.slc_pages * (state.control.slc_blocks > 0) * state.control.slc_own
        least = state.control.least_pages if model.parameters.gc_slicing else state.control.start_pages - folded
        assert (state.pools.free_pages[: 1 if shared else pools] >= least).all()
    check_wear(model)
    for pool in range(pools):
        check_rings(model, pool)
        check_cache(model, pool)
    for pool in range(1 if shared else pools):
        check_closed(model, pool)


def check_wear(model: Model) -> None:
    """The wear that the drive tells is that of its blocks in use, looked at one by one."""
    states, told = model.state.blocks.state, model.state.statistics()
    erases = model.state.blocks.erases[~np.isin(states, (flash_array.RETIRED_BLOCK, flash_array.SPARE_BLOCK, flash_array.OWN_SLC_BLOCK))]
    found = told["block_erases"]
    assert (found["min"], found["max"], found["mean"]) == (erases.min(), erases.max(), erases.mean())
    assert np.isclose(found["std"], erases.std(), rtol=1e-9, atol=0)
    assert told["retired_blocks"] == (states == flash_array.RETIRED_BLOCK).sum()


def ring(first: int, after: Integers, before: Integers) -> list[int]:
    """The blocks of a ring, in order; each link has its opposite."""
    found = [int(first)] if first >= 0 else []
    while found and (block := int(after[found[-1]])) != first:
        assert block not in found
        found.append(block)
    for block, following in zip(found, found[1:] + found[:1], strict=True):
        assert before[following] == block
    return found


def check_rings(model: Model, pool: int) -> None:
    """The free and the spare blocks of a pool stand in their rings."""
    pools, blocks, per_pool = model.state.pools, model.state.blocks, model.parameters.blocks_per_plane
    own = np.arange(pool * per_pool, (pool + 1) * per_pool)
    free = (blocks.state[own] == flash_array.FREE_BLOCK) & (blocks.written[own] == 0) & ~np.isin(own, pools.victim)
    assert sorted(ring(pools.first_free[pool], blocks.after, blocks.before)) == own[free].tolist()
    assert sorted(ring(pools.first_spare[pool], blocks.after, blocks.before)) == own[blocks.state[own] == flash_array.SPARE_BLOCK].tolist()


def check_cache(model: Model, pool: int) -> None:
    """The blocks of an SLC cache stand in its rings, or are being filled, and hold no more than one bit a cell."""
    pools, blocks, control, per_pool = model.state.pools, model.state.blocks, model.state.control, model.parameters.blocks_per_plane
    own = np.arange(pool * per_pool, (pool + 1) * per_pool)
    filled, erased = (ring(pools[name][pool], blocks.after, blocks.before) for name in ("slc_oldest", "slc_free"))
    opened = [int(block) for block in model.state.active[pool, flash_array.SLC_STREAM : flash_array.SLC_STREAM + 1] if block >= 0]
    assert sorted(filled + erased + opened) == own[blocks.state[own] >= flash_array.OWN_SLC_BLOCK].tolist()
    assert (blocks.state[own] == (flash_array.SLC_BLOCK if control.slc_own else flash_array.OWN_SLC_BLOCK)).sum() == 0
    assert len(filled) + len(opened) == pools.slc_blocks[pool] <= control.slc_blocks
    assert (blocks.written[filled + opened] <= control.slc_pages).all() and not blocks.written[erased].any()
    held = np.isin(own, filled + opened) & (blocks.written[own] > 0)
    assert (blocks.slc[own][held] == 1).all() and not blocks.slc[own][~held & (blocks.written[own] > 0)].any()


def check_closed(model: Model, collector: int) -> None:
    """The closed blocks of a pool, or of all where they share their collection, stand in their rings."""
    pools, blocks, per_pool = model.state.pools, model.state.blocks, model.parameters.blocks_per_plane
    own = np.arange(len(blocks)) if model.parameters.gc_pool == "shared" else np.arange(collector * per_pool, (collector + 1) * per_pool)
    assert sorted(ring(pools.oldest[collector], blocks.after, blocks.before)) == own[blocks.state[own] == flash_array.CLOSED_BLOCK].tolist()
    for valid in range(model.parameters.slots_per_block + 1):
        peers = own[(blocks.state[own] == flash_array.CLOSED_BLOCK) & (blocks.valid[own] == valid)]
        found = ring(model.state.by_valid[collector, valid], blocks.peer_after, blocks.peer_before)
        assert sorted(found) == peers.tolist()
        assert np.all(np.diff(blocks.changed[found]) >= 0)  # the one that changed longest ago first
        assert not found or pools.least_valid[collector] <= valid

"""Small drives and tie-heavy workloads for the tests of the SSD."""

from __future__ import annotations

from typing import Any

import numpy as np

from flashsim.core.host import one_command_each
from flashsim.core.parameters import build
from flashsim.core.request import FLUSH, READ, SECTOR, TRIM, WRITE, Completions, Integers, Requests, make_requests
from flashsim.core.rng import generator
from flashsim.ssd.engine import SsdEngine
from flashsim.ssd.flash_array import (
    ACTIVE_BLOCK,
    AFTER,
    BEFORE,
    CHANGED,
    CLOSED_BLOCK,
    DIE_VALID,
    FIRST_FREE,
    FREE,
    FREE_BLOCK,
    LEAST_VALID,
    OLDEST,
    OWNER,
    PEER_AFTER,
    PEER_BEFORE,
    SPARE_OWNER,
    STATE,
    VALID,
    WITH_VALID,
    WRITTEN,
)
from flashsim.ssd.gc.base import FAMILY as GC_FAMILY
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.specification import SsdSpecification

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


def random_drive(seed: int) -> SsdParameters:
    """A drive of random geometry and policy whose blocks are so few that garbage collection is always at work."""
    random = generator(seed, "drive")
    pages_per_block, blocks, reserve = (int(random.integers(*bounds)) for bounds in ((2, 7), (4, 10), (2, 4)))
    channels, packages, dies = (int(random.integers(1, 4)) for _ in range(3))
    usable = channels * packages * dies * (blocks - reserve) * pages_per_block
    return drive(
        capacity=max(1, int(usable * random.uniform(0.5, 1)) - 1) * PAGE, pages_per_block=pages_per_block, blocks_per_plane=blocks,
        gc_reserve=reserve, channels=channels, packages_per_channel=packages, dies_per_package=dies,
        queue_depth=int(random.choice([1, 2, 8, 32, 64])), erase=int(random.choice([10, 100, 1000])),
        link_write_rate=PAGE * 10**8 // int(random.choice([1, 1, 4])), gc=str(random.choice(GC_FAMILY.names())),
        gc_choices=int(random.integers(1, 4)),
    )  # fmt: skip


def random_workload(seed: int, parameters: SsdParameters, count: int) -> tuple[Requests, Integers]:
    """Requests of all kinds, 1 to 64 pages or some sectors, some waiting for others; and arrivals in multiples of 10 ns."""
    random = generator(seed, "workload")
    sectors, per_page = parameters.capacity // SECTOR, PAGE // SECTOR
    longest = min(64 * per_page, sectors) if random.random() < 0.3 else min(4 * per_page, sectors)
    length = random.integers(1, longest + 1, count)
    offset = random.integers(0, sectors, count)
    whole = random.random(count) < random.choice([0.5, 0.9])
    length = np.where(whole, -(-length // per_page) * per_page, length)
    offset = np.minimum(np.where(whole, offset // per_page * per_page, offset), sectors - length)
    operations = random.choice([READ, WRITE, TRIM, FLUSH], count, p=[0.3, 0.6, 0.07, 0.03])
    requests = make_requests(operations, offset * SECTOR, length * SECTOR)
    requests["dependency"] = np.where(random.random(count) < 0.3, random.integers(-1, np.arange(count)), -1)
    requests["think"] = 10 * random.integers(0, 4, count)
    return requests, 10 * random.integers(0, 1 + count * int(random.choice([0, 2, 10])), count)


def served(model: Model, requests: Requests, at: int | Integers = 0) -> Completions:
    """All completions, in their order, of requests that are not split."""
    model.submit(requests, one_command_each(requests), at)
    completions = model.advance(every=True)
    assert model.outstanding == 0
    return completions


def check_invariants(model: Model) -> None:
    """What must hold of an idle drive's map and blocks."""
    state, per_block = model.state, model.parameters.pages_per_block
    mapped = state.mapping[state.mapping > 0] - 1
    assert len(np.unique(mapped)) == len(mapped)  # injective
    owners = np.flatnonzero(state.mapping)
    assert np.array_equal(state.pages[mapped, OWNER] - 1, owners)
    assert np.array_equal(state.pages[mapped, SPARE_OWNER] - 1, owners)  # what the spare area says
    assert (state.spare[mapped] > 0).all()
    blocks = state.blocks
    used = (state.spare != 0).reshape(-1, per_block)
    # Programmed in order, from the first page on: free, valid and invalid pages make up the whole.
    assert np.array_equal(used, np.arange(per_block) < used.sum(axis=1)[:, None])
    assert np.array_equal(used.sum(axis=1), blocks[WRITTEN])
    assert np.array_equal(np.bincount(mapped // per_block, minlength=blocks.shape[1]), blocks[VALID])
    per_die = blocks[STATE].reshape(model.parameters.dies, -1)
    assert ((per_die == ACTIVE_BLOCK).sum(axis=1) == 1).all()  # one active block
    assert np.array_equal((per_die == FREE_BLOCK).sum(axis=1), state.dies[FREE])  # free blocks, as counted
    assert (state.dies[FREE] >= model.parameters.gc_reserve).all()
    assert np.array_equal(blocks[VALID].reshape(model.parameters.dies, -1).sum(axis=1), state.dies[DIE_VALID])
    for die in range(model.parameters.dies):
        check_rings(model, die)


def ring(dies: Integers, blocks: Integers, start: int, links: int, die: int) -> list[int]:
    """The blocks of a ring, in order; each link has its opposite."""
    first = int(dies[start, die])
    found = [first] if first >= 0 else []
    while found and (block := int(blocks[links, found[-1]])) != first:
        assert block not in found
        found.append(block)
    for block, after in zip(found, found[1:] + found[:1], strict=True):
        assert blocks[links + 1, after] == block
    return found


def check_rings(model: Model, die: int) -> None:
    """The free and the closed blocks of a die, and the closed ones of each count of valid pages, stand in their rings."""
    dies, blocks, per_die = model.state.dies, model.state.blocks, model.parameters.blocks_per_die
    assert (BEFORE, PEER_BEFORE) == (AFTER + 1, PEER_AFTER + 1)
    own = np.arange(die * per_die, (die + 1) * per_die)
    for start, state in ((FIRST_FREE, FREE_BLOCK), (OLDEST, CLOSED_BLOCK)):
        assert sorted(ring(dies, blocks, start, AFTER, die)) == own[blocks[STATE, own] == state].tolist()
    for valid in range(model.parameters.pages_per_block + 1):
        peers = own[(blocks[STATE, own] == CLOSED_BLOCK) & (blocks[VALID, own] == valid)]
        found = ring(dies, blocks, WITH_VALID + valid, PEER_AFTER, die)
        assert sorted(found) == peers.tolist()
        assert np.all(np.diff(blocks[CHANGED, found]) >= 0)  # the one that changed longest ago first
        assert not found or dies[LEAST_VALID, die] <= valid

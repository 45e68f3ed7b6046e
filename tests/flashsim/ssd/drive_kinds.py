"""Small flash drives of more kinds: pages mapped in units, cells of several bits, a cache of one bit, and placement handles."""

from __future__ import annotations

from dataclasses import replace

from flashsim.core.request import SECTOR
from flashsim.core.rng import generator
from flashsim.ssd.ftl.base import FAMILY
from flashsim.ssd.parameters import LEVELS, SsdParameters
from flashsim.testing import flash_drives
from flashsim.testing.flash_drives import PAGE, with_pace

#: What `drive_for` makes drives for: translation layers, pages that are mapped in units, cells of several bits, and a cache of one bit.
_MIXTURES = ("units and levels", "levels and slc", "units, levels and slc", "units and handles", "units, levels, slc and handles")
KINDS = [*FAMILY.names(), "levels", "units", "handles", *_MIXTURES]


def drive_for(kind: str, parameters: SsdParameters) -> SsdParameters:
    """A drive like the one given, of one of the kinds."""
    if kind in FAMILY.names():
        return flash_drives.drive_for(kind, parameters)
    for word, change in (("units", with_units), ("levels", with_levels), ("slc", with_slc), ("handles", with_handles)):
        parameters = change(parameters.capacity, parameters) if word in kind else parameters
    return with_pace(parameters.capacity, parameters)


def with_units(seed: int, parameters: SsdParameters) -> SsdParameters:
    """A drive like the one given whose flash pages hold 2 or 4 mapping units, with what that needs, and as much less capacity."""
    random = generator(seed, "units")
    unit = PAGE // int(random.choice([2, 4]))
    changed = replace(
        parameters, mapping_unit=0, ftl="page", allocation=str(random.choice(["round-robin", "dynamic"])), gc_copyback=False,
        endurance=0, write_buffer=int(random.choice([1, 2, 5])) * PAGE, continuation_latency=0, continuation_limit=0,
        write_buffer_mode=str(random.choice(["write-back", "write-back", "write-through"])), capacity=unit,
    )  # fmt: skip
    changed = replace(changed, mapping_unit=unit)
    if changed.write_buffer_mode == "write-back" and generator(seed, "batches").random() < 0.5:
        groups = int(generator(seed, "batch").integers(1, 1 + changed.write_buffer // PAGE))
        changed = replace(changed, write_buffer_batch=groups * PAGE)
    capacity = max(1, min(parameters.capacity, (changed.pools * changed.pool_limit - 1) * unit) // PAGE) * PAGE
    return replace(changed, capacity=capacity, power_protected=bool(random.random() < 0.3))


def with_levels(seed: int, parameters: SsdParameters) -> SsdParameters:
    """A drive like the one given whose cells have several bits and wear; with mapping units, some of one program a word line."""
    random = generator(seed, "levels")
    cell = str(random.choice(["mlc", "tlc", "qlc"]))
    levels, one_shot = LEVELS[cell], parameters.units > 1 and bool(random.random() < 0.4)
    reads, programs = (tuple((10 * random.integers(1, 9, levels)).tolist()) for _ in range(2))
    changed = replace(
        parameters, cell=cell, read_pages=reads if random.random() < 0.7 else (), one_shot=one_shot, code_word=SECTOR,
        program_pages=() if one_shot or random.random() < 0.3 else programs, erase_growth=int(random.choice([0, 20_000])),
        read_retry=(retry := float(random.choice([0, 0.2]))), read_retry_growth=(growth := float(random.choice([0, 20]))),
        read_retry_time=int(random.choice([0, 50])) * (retry + growth > 0),
        pages_per_block=levels * 2 if one_shot else parameters.pages_per_block,
        write_buffer=max(parameters.write_buffer, levels * PAGE * one_shot), capacity=PAGE, write_buffer_batch=0,
        mapping_unit=0 if one_shot and random.random() < 0.3 else parameters.mapping_unit,
    )  # fmt: skip
    if parameters.write_buffer_batch:
        whole = changed.group * changed.unit_size
        changed = replace(changed, write_buffer_batch=max(1, parameters.write_buffer_batch // whole) * whole)
    capacity = min(parameters.capacity, (changed.pools * changed.pool_limit - 1) * changed.unit_size) if one_shot else parameters.capacity
    return replace(changed, capacity=max(1, capacity // PAGE) * PAGE)


def with_slc(seed: int, parameters: SsdParameters) -> SsdParameters:
    """A drive like the one given with an SLC cache, in a few more blocks."""
    random = generator(seed, "slc")
    lines, blocks = int(random.integers(1, 4)) * (parameters.levels if parameters.one_shot else 1), int(random.integers(1, 4))
    static, streams = bool(random.random() < 0.5), parameters.gc_streams
    plain = replace(
        parameters, gc_pool="die", gc_slicing=False, ftl="page", pages_per_block=max(2, lines * parameters.levels), capacity=PAGE,
        gc_stop=0, gc_reserve=max(parameters.gc_reserve, 2 + streams), blocks_per_plane=parameters.blocks_per_plane + blocks + 3,
    )  # fmt: skip
    changed = replace(
        plain, slc_cache=max(1, blocks * plain.slc_pages * plain.unit_size * plain.pools), slc_mode="static" if static else "dynamic",
        slc_full=str(random.choice(["direct", "fold"])), slc_idle=int(random.choice([0, 10, 50, 300])),
        slc_read=int(random.choice([0, 10])), slc_program=int(random.choice([0, 10, 20])),
    )  # fmt: skip
    limit = changed.pools * (changed.pool_limit - 1) - changed.pools * (changed.allocation == "static")
    return replace(
        changed, capacity=max(1, min(parameters.capacity, int(random.uniform(0.5, 1) * limit) * changed.unit_size) // PAGE) * PAGE
    )


def with_handles(seed: int, parameters: SsdParameters) -> SsdParameters:
    """A drive like the one given whose host has several placement handles."""
    random = generator(seed, "handles")
    handles = int(random.integers(2, 4))
    return replace(
        parameters, ftl="page", placement_handles=handles, queues=handles * int(random.integers(1, 3)),
        blocks_per_plane=parameters.blocks_per_plane + 2 * handles - 2, gc_reserve=parameters.gc_reserve + handles - 1,
        gc_stop=parameters.gc_stop and parameters.gc_stop + handles - 1,
    )  # fmt: skip

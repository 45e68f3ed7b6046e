"""The arithmetic on erases in the slides of Do and Patel (DaMoN 2009), on a drive that maps blocks: 256 KB are 64 pages, an erase block."""

from __future__ import annotations

import numpy as np
import pytest

from flashsim.core.request import WRITE, Requests, make_requests
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.testing.flash_drives import Model, drive, serve_all

PAGE, PER_BLOCK, BLOCKS = 4096, 64, 64
MODELS = pytest.mark.parametrize("model", [SsdEngine, SsdSpecification])


def empty(model: type[Model]) -> Model:
    """A drive with one plane."""
    parameters = drive(
        ftl="block", gc="none", allocation="static", channels=1, page_size=PAGE, pages_per_block=PER_BLOCK, blocks_per_plane=BLOCKS + 3,
        capacity=BLOCKS * PER_BLOCK * PAGE, channel_rate=PAGE * 10**8, link_read_rate=PAGE * 10**8, link_write_rate=PAGE * 10**8,
    )  # fmt: skip
    return model(parameters)


def full(model: type[Model]) -> Model:
    """The same drive, every block of which holds data."""
    device = empty(model)
    device.load(0, device.capacity)
    return device


def pages(*numbers: int) -> Requests:
    """A write of one page each."""
    return make_requests(WRITE, np.array(numbers) * PAGE, PAGE)


def counts(device: Model, requests: Requests) -> tuple[int, int, int]:
    """Erases, moves and programs for the host that the requests take."""
    names = ("flash_erases", "programs_merge", "programs_host")
    before = device.statistics()
    serve_all(device, requests, device.now)
    after = device.statistics()
    assert after["flash_programs"] == after["programs_host"] + after["programs_merge"]
    erases, moves, programs = (after[name] - before[name] for name in names)
    return erases, moves, programs


@MODELS
def test_256_kb_in_one_write(model: type[Model]) -> None:
    """One erase and 64 programs; page by page in the same order it is the same."""
    assert counts(full(model), make_requests(WRITE, [5 * PER_BLOCK * PAGE], PER_BLOCK * PAGE)) == (1, 0, 64)
    assert counts(full(model), pages(*range(5 * PER_BLOCK, 6 * PER_BLOCK))) == (1, 0, 64)


@MODELS
def test_256_kb_in_64_writes_at_worst(model: type[Model]) -> None:
    """64 erases and 64 programs: one page of each of 64 blocks, and 63 moves for each of them."""
    last_pages = [block * PER_BLOCK + PER_BLOCK - 1 for block in range(BLOCKS)]
    assert counts(full(model), pages(*last_pages)) == (64, 64 * 63, 64)


@MODELS
def test_64_writes_of_a_page_that_is_alone_in_its_block(model: type[Model]) -> None:
    """64 erases and 64 programs, and nothing to move."""
    device = empty(model)
    assert counts(device, pages(7)) == (0, 0, 1)
    assert counts(device, pages(*[7] * 64)) == (64, 0, 64)


@MODELS
def test_256_kb_in_64_writes_from_the_end(model: type[Model]) -> None:
    """Every write replaces the block: 64 erases, the last of them when the order is broken once more."""
    device = full(model)
    assert counts(device, pages(*range(63, -1, -1))) == (63, 63 * 63, 64)
    assert counts(device, pages(PER_BLOCK + 63)) == (2, 63 + 63, 1)  # the pages behind page 0, and those before page 63 of the other block


@MODELS
def test_the_example(model: type[Model]) -> None:
    """LBAs 3, 100, 99, 1, 2: for 1 to 3 two erases, three moves and three programs; 100 and 99 take one, one and two."""
    assert counts(empty(model), pages(3, 1, 2)) == (2, 3, 3)
    assert counts(empty(model), pages(100, 99)) == (1, 1, 2)
    device = empty(model)
    steps = [counts(device, pages(page)) for page in (3, 100, 99, 1, 2)]
    assert steps == [(0, 0, 1), (0, 0, 1), (1, 1, 1), (1, 1, 1), (1, 2, 1)]


@MODELS
def test_the_example_in_order(model: type[Model]) -> None:
    """LBAs 1, 2, 3 of a block that holds them: one erase and three programs."""
    device = empty(model)
    assert counts(device, pages(1, 2, 3)) == (0, 0, 3)
    assert counts(device, pages(1, 2, 3)) == (1, 0, 3)

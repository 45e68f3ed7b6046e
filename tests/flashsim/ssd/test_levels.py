"""Cells of several bits: times that can be worked out by hand, on both models, and the share of reads that are tried again."""

from __future__ import annotations

import numpy as np
import pytest

from flashsim.core.request import FLUSH, FORCE_UNIT_ACCESS, READ, WRITE, make_requests
from flashsim.core.rng import generator
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.testing.flash_drives import PAGE, drive, serve_all

MODELS = pytest.mark.parametrize("model", [SsdEngine, SsdSpecification])
#: One die with TLC: a command costs the controller 10, a page 10 over channel and link each.
TLC = {"channels": 1, "cell": "tlc", "pages_per_block": 6, "capacity": 20 * PAGE, "queue_depth": 1}


def durations(device: SsdEngine | SsdSpecification, operation: int, pages: list[int], flags: int = 0) -> list[int]:
    requests = make_requests(operation, np.array(pages) * PAGE, PAGE, serial=True)
    requests["flags"] = flags
    completions = serve_all(device, requests, device.now)
    return (completions["completed"] - completions["submitted"]).tolist()


@MODELS
def test_each_page_of_a_word_line_has_its_times(model: type[SsdEngine | SsdSpecification]) -> None:
    device = model(drive(**TLC, read_pages=["10ns", "30ns", "50ns"], program_pages=[100, 200, 300]))
    assert durations(device, WRITE, list(range(6))) == [10 + 10 + 10 + time for time in (100, 200, 300)] * 2
    assert durations(device, READ, list(range(6))) == [10 + time + 10 + 10 for time in (10, 30, 50)] * 2


@MODELS
def test_a_word_line_is_programmed_at_once(model: type[SsdEngine | SsdSpecification]) -> None:
    """Three pages over link and channel, one after the other, and one program; a flush leaves what is missing empty."""
    device = model(drive(**TLC, one_shot=True, write_buffer=6 * PAGE, read_pages=[10, 30, 50]))
    requests = make_requests(WRITE, 0, 3 * PAGE)
    requests["flags"] = FORCE_UNIT_ACCESS
    completion = serve_all(device, requests)[0]
    assert completion["completed"] == 10 + 3 * 10 + 3 * 10 + 40
    assert durations(device, READ, [0, 1, 2]) == [10 + time + 10 + 10 for time in (10, 30, 50)]
    serve_all(device, make_requests([WRITE, FLUSH], [3 * PAGE, 0], [PAGE, 0], serial=True), device.now)
    assert (device.statistics()["flash_programs"], device.statistics()["padded_programs"]) == (6, 2)


@MODELS
def test_erases_grow_with_wear(model: type[SsdEngine | SsdSpecification]) -> None:
    """The die is busy for longer by 30 ns an erase with every thousand erases, with 2,000 of them."""
    busy = []
    for growth in (0, 30):
        device = model(drive(channels=1, capacity=20 * PAGE, queue_depth=1, erase_growth=growth))
        device.state.blocks.erases[:] = device.state.blocks.cycles[:] = 2000
        serve_all(device, make_requests(WRITE, generator(1, "erases").integers(0, 20, 200) * PAGE, PAGE))
        busy.append(sum(device.statistics()["die_busy_ns"]))
    assert device.statistics()["flash_erases"] > 30
    assert busy[1] - busy[0] == 60 * device.statistics()["flash_erases"]


def test_reads_are_tried_again_as_often_as_wear_says() -> None:
    """One in ten of new blocks, and one in twenty more with every thousand erases: 2,000 have made it one in five."""
    for erases, probability in ((0, 0.1), (2000, 0.2)):
        device = SsdEngine(drive(read_retry=0.1, read_retry_growth=0.05, read_retry_time=70))
        device.state.blocks.erases[:] = device.state.blocks.cycles[:] = erases
        device.load(0, 40 * PAGE)
        times = np.array(durations(device, READ, np.tile(np.arange(40), 500).tolist()))
        assert set(times.tolist()) == {50, 50 + 70}
        deviation = np.sqrt(probability * (1 - probability) / len(times))
        assert abs((times > 50).mean() - probability) < 4 * deviation
        assert device.statistics()["read_retries"] == (times > 50).sum()


@MODELS
def test_reads_bring_whole_code_words(model: type[SsdEngine | SsdSpecification]) -> None:
    """Of a page with four sectors, 40 ns over channel and link each, a read of one or two sectors brings one code word."""
    rates = dict.fromkeys(("channel_rate", "link_read_rate", "link_write_rate"), 512 * 10**8)
    device = model(drive(**rates, read_latency=70, write_latency=90, code_word=1024))
    device.load(0, 4 * PAGE)
    for sectors, word_time in ((1, 20), (2, 20), (3, 40), (4, 40)):
        completion = serve_all(device, make_requests(READ, PAGE, sectors * 512), device.now)[0]
        assert completion["completed"] - completion["submitted"] == 10 + 20 + word_time + 10 * sectors

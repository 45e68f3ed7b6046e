"""Short commands that go on where the last one of their operation ended, on both models: what they take, and what goes on so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from flashsim.core.errors import InvalidParameterError, RefusedError
from flashsim.core.host_queue import one_command_each
from flashsim.core.request import FLUSH, FORCE_UNIT_ACCESS, READ, WRITE, Integers, Requests, make_requests
from flashsim.core.units import KIB, transfer_time
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.testing.flash_drives import PAGE, Model, drive, serve_all
from tests.cases import with_each
from tests.flashsim.ssd.test_times import OLD

MODELS = pytest.mark.parametrize("model", [SsdEngine, SsdSpecification])
LATENCY = 110_000
#: The drive of 2008, which reads ahead and writes behind 16 KiB.
SHORT = replace(OLD, continuation_latency=LATENCY, continuation_limit=16 * KIB)
RATES = {READ: OLD.link_read_rate, WRITE: OLD.link_write_rate}


def latencies(device: Model, requests: Requests) -> Integers:
    completions = serve_all(device, requests, device.now)
    return completions["completed"] - completions["submitted"]


@MODELS
@with_each(("operation", "pages"), [(READ, 1), (READ, 2), (READ, 4), (WRITE, 1), (WRITE, 2)])
def test_commands_in_order_take_the_latency_and_their_transfer(model: type[Model], operation: int, pages: int) -> None:
    """The first is as without; each of the others takes 0.11 ms and its pages over the link, however long the chips take beside."""
    device, length = model(SHORT), pages * 4096
    device.load(0, SHORT.capacity // 2)
    found = latencies(device, make_requests(operation, np.arange(100) * length, length, serial=True))
    link = pages * transfer_time(4096, RATES[operation])
    assert found[0] == 350_000 + link
    assert found[1:].tolist() == [LATENCY + link] * 99
    numbers = device.statistics()
    assert numbers["continued_reads" if operation == READ else "continued_writes"] == 99
    assert numbers["flash_reads" if operation == READ else "flash_programs"] == 100 * pages


@MODELS
@with_each("operation", [READ, WRITE])
def test_what_does_not_go_on_takes_what_it_takes_without(model: type[Model], operation: int) -> None:
    """Commands longer than the limit, those that leave a gap, and writes of parts of a page."""
    plain, short = model(OLD), model(SHORT)
    for device in (plain, short):
        device.load(0, OLD.capacity // 2)
    for step, length in ((20 * KIB, 20 * KIB), (12 * KIB, 8 * KIB), (-8 * KIB, 8 * KIB)):
        requests = make_requests(operation, 1024 * KIB + np.arange(20) * step, length, serial=True)
        assert np.array_equal(latencies(plain, requests), latencies(short, requests))
    if operation == WRITE:
        requests = make_requests(WRITE, np.arange(20) * 2048, 2048, serial=True)
        assert np.array_equal(latencies(plain, requests), latencies(short, requests))
    np.testing.assert_equal(short.statistics(), plain.statistics())


@MODELS
def test_reads_and_writes_have_an_end_each(model: type[Model]) -> None:
    """Of reads and writes by turns, each goes on where the last of its own kind ended; reads may be parts of a page."""
    device = model(SHORT)
    device.load(0, OLD.capacity // 2)
    at = np.arange(40) // 2
    requests = make_requests([READ, WRITE] * 20, np.where(np.arange(40) % 2, 2**24 + 4096 * at, 2048 * at), [2048, 4096] * 20, serial=True)
    found = latencies(device, requests)
    assert set(found[2::2].tolist()) == {LATENCY + transfer_time(2048, OLD.link_read_rate)}
    assert set(found[3::2].tolist()) == {LATENCY + transfer_time(4096, OLD.link_write_rate)}


#: One die; a page over the channel or the link takes 10, its program 40: a write of one page takes 70, and one that goes on 30.
ONE_DIE: dict[str, Any] = {"channels": 1, "capacity": 20 * PAGE, "continuation_latency": 20, "continuation_limit": PAGE}


@MODELS
def test_a_write_that_finds_no_room_is_as_any_other(model: type[Model]) -> None:
    device = model(drive(**ONE_DIE, queue_depth=1))
    found = latencies(device, make_requests(WRITE, np.arange(5) * PAGE, PAGE, serial=True))
    # 0: 10 controller, 10 link, 10 channel, 40 program.  1: acknowledged at 100, on the channel until 110, programmed at 150.
    # 2: room is taken at 100, so 10 controller, 10 link, and the die from 150 to 200.  3 as 1, 4 as 2.
    assert found.tolist() == [70, 30, 100, 30, 100]
    assert device.statistics()["continued_writes"] == 2


@MODELS
@with_each("forced", [False, True])
def test_a_flush_waits_for_what_is_programmed_behind(model: type[Model], forced: bool) -> None:
    """A write with forced unit access leaves nothing behind."""
    device = model(drive(**ONE_DIE, queue_depth=1))
    requests = make_requests([WRITE, WRITE, FLUSH], [0, PAGE, 0], [PAGE, PAGE, 0], serial=True)
    requests["flags"][1] = FORCE_UNIT_ACCESS if forced else 0
    completions = serve_all(device, requests)
    # The second write is programmed at 140 if forced; else acknowledged at 100 and programmed at 150.  A flush takes the controller 10.
    assert completions["completed"].tolist() == ([70, 140, 150] if forced else [70, 100, 150])


@MODELS
def test_a_power_cut_takes_what_is_not_yet_programmed(model: type[Model]) -> None:
    requests = make_requests(WRITE, [0, PAGE], PAGE, serial=True)
    for cut, kept in ((149, 0), (150, 2)):
        device = model(drive(**ONE_DIE, queue_depth=1))
        device.submit(requests, one_command_each(requests), 0)
        assert device.advance(cut, every=True)["completed"].tolist() == [70, 100]
        assert len(device.power_cut(cut).lost) == 0
        assert [device.version(0), device.version(1)] == [1, kept]


@with_each(
    ("changes", "error", "message"),
    [
        ({"continuation_latency": 20}, InvalidParameterError, "continuation_limit: 0 B, but with a continuation_latency it must hold"),
        (
            {"continuation_latency": 20, "continuation_limit": PAGE - 512},
            InvalidParameterError,
            "continuation_limit: .* a flash page, 2 KiB",
        ),
        ({"continuation_limit": PAGE}, InvalidParameterError, "continuation_latency: 0 ns, but .* it must be more than 0, and less than"),
        ({"continuation_latency": 40, "continuation_limit": PAGE}, InvalidParameterError, "continuation_latency: 40 ns, but .* less than"),
        ({"continuation_latency": -1, "continuation_limit": PAGE}, InvalidParameterError, "continuation_latency: -1, but .* at least 0"),
        ({"continuation_latency": 20, "continuation_limit": -1}, InvalidParameterError, "continuation_limit: -1, but .* at least 0"),
        (
            {"continuation_latency": 20, "continuation_limit": PAGE, "write_buffer": 4 * PAGE},
            RefusedError,
            "continuation_latency: not supported with a write_buffer",
        ),
    ],
)
def test_impossible_continuations(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{message}"):
        drive(**changes)

"""``flashsim device calibrate --cpu``: a preset of this machine that joins are priced with, and what the command refuses."""

from __future__ import annotations

import itertools
import json
import os
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from flashsim.apps.calibration import cpu_prices
from flashsim.apps.calibration.cpu_prices import CpuPrice, CpuPrices
from flashsim.core.units import MILLISECONDS, SECONDS
from flashsim.device.aio import KernelQueue
from flashsim.execution import cpu
from flashsim.execution.requests import Work
from tests.cases import with_each
from tests.commands import SMALL_JOIN, Run


def test_this_machine_prices_a_join(flashsim: Run, here: Path) -> None:
    result = flashsim("device calibrate --cpu --time 100ms --out mine.toml --json mine.json")
    assert result.exit_code == 0, result.output
    assert sorted(os.listdir(here)) == ["mine.json", "mine.toml"]
    told = json.loads((here / "mine.json").read_text(encoding="utf-8"))
    names = [*(kind.value for kind in Work), "per_request", "per_byte", "per_call"]
    assert list(told["prices"]) == names and told["provenance"]["parameters"]["cpu"]
    assert [line.split()[0] for line in result.stdout.splitlines()[2:]] == names
    model = cpu.load("mine.toml")
    assert (here / "mine.toml").read_text(encoding="utf-8").startswith(f"# {told['processor']}.\n") and model.year == 0
    assert all(source.startswith("measured: ") for source in model.sources.values())
    for kind in Work:
        assert model.user[kind] == pytest.approx(told["prices"][kind]["nanoseconds"], rel=1e-3)
        assert model.user[kind] > 0
    assert min(model.user[kind] for kind in Work) < model.user[cpu.DEFAULT] < max(model.user[kind] for kind in Work)
    assert model.cores["host"] == len(os.sched_getaffinity(0))
    assert model.user[Work.READ_TUPLE] > model.user[Work.HASH]  # a tuple's bytes are found and decoded, a key's hash is some instructions
    joined = flashsim(f"{SMALL_JOIN} --cpu mine.toml --json join.json")
    assert joined.exit_code == 0, joined.output
    total = json.loads((here / "join.json").read_text(encoding="utf-8"))["machines"][0]["total"]
    work = {Work(kind): count for kind, count in total["work"].items()}
    assert total["user_time"] == pytest.approx(model.user_time(work), rel=1e-3)


def test_a_long_measurement_is_made_in_rounds_of_which_the_least_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = [cpu_prices.CallTimes(100, 1.0), cpu_prices.CallTimes(80, 0.5), cpu_prices.CallTimes(90, 0.2)]
    times = cpu_prices.CallTimes.of_rounds(rounds)
    assert (times.least, times.spread) == (80, pytest.approx(120 / 80 - 1))
    lasted: list[int] = []

    def repeat(call: partial[None], duration: int) -> cpu_prices.CallTimes:
        lasted.append(duration)
        return cpu_prices.CallTimes(1000 * len(lasted), 0.1)

    monkeypatch.setattr(cpu_prices, "repeat", repeat)
    cpu_prices.kernel_prices(tmp_path, 60 * SECONDS)
    assert lasted == [60 * SECONDS // 16] * 16


def test_a_clock_that_loses_time_makes_nothing_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of 400 repeats seems to take no time, all others 100 to 498 ns."""
    spans = [0, *range(100, 499)]
    clock = (reading for span in itertools.cycle(spans) for reading in (0, span))
    passed = itertools.count()
    monkeypatch.setattr(cpu_prices, "time", SimpleNamespace(thread_time_ns=lambda: next(clock), perf_counter_ns=lambda: next(passed)))
    assert 100 <= cpu_prices.repeat(lambda: None, len(spans)).least <= 105


def test_the_kernel_is_told_a_call_a_request_and_a_byte_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests that take 5 us and 0.5 ns a byte, and 3 us a call, in a loop that takes 1 us for each; sets by two calls."""

    def repeat(call: partial[None], _: int) -> cpu_prices.CallTimes:
        call()
        size = call.args[2]
        if isinstance(call.args[0], KernelQueue):
            return cpu_prices.CallTimes(2 * 3000 + 128 * (5000 + 0.5 * size), 0.3)
        return cpu_prices.CallTimes(128 * (1000 + (3000 + 5000 + 0.5 * size if size else 0)), 0.1)

    monkeypatch.setattr(cpu_prices, "repeat", repeat)
    request, byte, call = cpu_prices.kernel_prices(tmp_path, MILLISECONDS)
    assert (request.name, request.value) == ("per_request", pytest.approx(5000))
    assert (byte.name, byte.value) == ("per_byte", pytest.approx(0.5))
    assert (call.name, call.value, call.spread) == ("per_call", pytest.approx(3000), 0.3)
    assert os.listdir(tmp_path) == []


def test_where_the_kernel_takes_no_sets_a_call_is_part_of_a_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: int) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(cpu_prices, "repeat", lambda call, _: cpu_prices.CallTimes(128 * (5000 + 0.5 * call.args[2]), 0.1))
    monkeypatch.setattr(cpu_prices, "KernelQueue", refuse)
    assert [price.name for price in cpu_prices.kernel_prices(tmp_path, MILLISECONDS)] == ["per_request", "per_byte"]


def test_the_least_repeat_counts_and_the_median_says_how_they_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0, 9, 0, 10, 0, 12, 0, 11, 0, 30])
    monkeypatch.setattr(cpu_prices.time, "thread_time_ns", lambda: next(clock))
    timed = cpu_prices.repeat(lambda: None, 0)
    assert timed.least == 9 and timed.spread == pytest.approx(11 / 9 - 1)


def test_a_preset_holds_the_prices_with_their_sources(tmp_path: Path) -> None:
    names = [*(kind.value for kind in Work), "per_request", "per_byte", "per_call"]
    made = CpuPrices("mine", [CpuPrice(name, 10.0 * place + 1 / 3, 0.25, f"how {name}") for place, name in enumerate(names)])
    (tmp_path / "mine.toml").write_text(made.text(), encoding="utf-8")
    model = cpu.load(str(tmp_path / "mine.toml"))
    assert model == made.model()
    assert model.user[Work.HASH] == pytest.approx(10 * list(Work).index(Work.HASH) + 1 / 3, rel=1e-3)
    assert model.per_request["hdd"] == model.per_request["ssd"] == pytest.approx(10 * len(Work) + 1 / 3, rel=1e-3)
    assert model.per_call["hdd"] == model.per_call["ssd"] == pytest.approx(10 * (len(Work) + 2) + 1 / 3, rel=1e-3)
    assert model.sources["user.hash"] == "measured: how hash; spread 25.0%"


REFUSED = {
    "--cpu ocz-core-60gb --out new.toml": "PATH: ocz-core-60gb",
    "--cpu --size 1GiB --out new.toml": "--size: 1 GiB",
    "--cpu --allow-write --out new.toml": "--allow-write",
    "--cpu --yes-destroy /dev/null --out new.toml": "--yes-destroy: /dev/null",
    "--cpu --out new.txt": "ends in .toml",
    "--cpu --out old.toml": "--force",
    "--cpu --out nowhere/new.toml": "--out",
    "--cpu --time 1ms --out new.toml": "--time",
    "--out new.toml": "a device is needed, or --cpu",
}


@with_each("words", REFUSED)
def test_bad_input_is_one_line_and_leaves_nothing(words: str, flashsim: Run, here: Path) -> None:
    (here / "old.toml").write_text("kept", encoding="utf-8")
    result = flashsim(f"device calibrate {words}")
    assert result.exit_code == 2, result.output
    assert REFUSED[words] in result.stderr and result.stderr.count("\n") == 1
    assert os.listdir(here) == ["old.toml"]
    assert (here / "old.toml").read_text(encoding="utf-8") == "kept"


def test_a_folder_without_room_is_told(flashsim: Run, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("flashsim.apps.calibration.cpu_prices.os.posix_fallocate", full)
    result = flashsim("device calibrate --cpu --time 100ms --out new.toml")
    assert result.exit_code == 2 and "No space left" in result.stderr and result.stderr.count("\n") == 1
    assert os.listdir(here) == []


def test_an_interrupt_leaves_nothing(flashsim: Run, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("flashsim.apps.calibration.cpu_prices.repeat", interrupted)
    result = flashsim("device calibrate --cpu --time 100ms --out new.toml")
    assert result.exit_code == 130
    assert os.listdir(here) == []


def test_a_file_system_without_direct_io_is_told_in_the_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(file: int, command: int, flags: int = 0) -> int:
        if flags & os.O_DIRECT:
            raise OSError(22, "Invalid argument")
        return set_flags(file, command, flags)

    set_flags = cpu_prices.fcntl.fcntl
    monkeypatch.setattr(cpu_prices.fcntl, "fcntl", refuse)
    prices = cpu_prices.kernel_prices(tmp_path, MILLISECONDS)
    assert all("page cache" in price.source and np.isfinite(price.value) for price in prices)

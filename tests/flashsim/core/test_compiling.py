"""Kernels compiled beforehand: which they are, that processes side by side leave them in the cache, and what happens if they cannot."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from flashsim.core import compiling, kernel
from flashsim.core.compiling import Compilation, Part, parts_of
from flashsim.ssd.ftl.base import TRANSLATE
from tests.processes import end, wait_until
from tests.yardstick import seconds

pytestmark = pytest.mark.skipif(not kernel.is_compiled(), reason="kernels are not compiled under NUMBA_DISABLE_JIT")


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FLASHSIM_CACHE", str(tmp_path))
    return tmp_path


def test_the_parts_of_engines_are_found_without_importing_them() -> None:
    parts = [f"{part.module}:{part.function}" for part in parts_of(["flashsim.ssd.engine.drive", "flashsim.hdd.engine.drive"])]
    longest = ["flashsim.ssd.engine.drive:advance", "flashsim.hdd.engine.drive:advance", "flashsim.ssd.engine.admission:dispatch"]
    assert parts[: len(longest)] == longest
    assert {f"flashsim.core.host_queue:{name}" for name in ("_enter", "_collect", "_next_arrival")} <= set(parts)
    assert parts_of(["flashsim.hdd.state.seek", "of.ones.own"]) == []


def test_a_disk_needs_no_flash_engine_and_the_other_way_round() -> None:
    for one, other in (("ssd", "hdd"), ("hdd", "ssd")):
        modules = {part.module for part in parts_of([f"flashsim.{one}.engine.drive"])}
        assert modules and not any(module.startswith(f"flashsim.{other}.") for module in modules)


def test_a_layer_of_ones_own_is_left_to_whoever_uses_it() -> None:
    assert [part.module for part in parts_of([], [(TRANSLATE, "page"), (TRANSLATE, "./own.py")])] == ["flashsim.ssd.ftl.page"]


def test_processes_leave_their_parts_in_the_cache(empty_cache: Path) -> None:
    parts = parts_of(["flashsim.hdd.engine.drive"])
    assert not any(part.is_kept() for part in parts)
    compilation = Compilation(parts)
    compilation.wait("a disk")
    assert all(part.is_kept() for part in parts) and compilation.share == pytest.approx(1)
    assert Compilation(parts).is_over(0)


def test_a_process_that_dies_leaves_its_parts_to_whoever_needs_them(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    silent = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    monkeypatch.setattr(compiling, "python_command", lambda function: silent)
    compilation = Compilation(parts_of(["flashsim.ssd.engine.drive"]))
    assert wait_until(lambda: bool(compilation._workers))
    compilation.stop()
    compilation.wait("what nobody compiles")
    assert compilation.is_over(0)


def test_an_interrupt_ends_the_processes(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compilation = Compilation(parts_of(["flashsim.ssd.engine.drive"]))

    def interrupted(self: Compilation, seconds: float) -> bool:
        if not seconds:
            return False
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Compilation, "is_over", interrupted)
        compilation.wait("what is interrupted")
    compilation.is_over(seconds(60))
    assert all(worker.poll() is not None for worker in compilation._workers)


def test_processes_end_with_a_parent_that_is_killed(empty_cache: Path) -> None:
    code = (
        "import os, signal, time\nfrom flashsim.core.compiling import Compilation, parts_of\n"
        "compilation = Compilation(parts_of(['flashsim.ssd.engine.drive']))\n"
        "while len(compilation._workers) < len(compilation._threads):\n    time.sleep(0.01)\n"
        "print(*[worker.pid for worker in compilation._workers], flush=True)\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    workers = [int(word) for word in done.stdout.split()]
    assert done.returncode == -signal.SIGKILL and workers
    assert end(workers)


def test_what_takes_less_than_a_process_takes_to_start_is_left_to_whoever_calls_it(empty_cache: Path) -> None:
    assert Compilation(parts_of(["flashsim.core.host_queue"])).is_over(0) and not list(empty_cache.rglob("*.kernel"))


def test_nothing_is_begun_where_nothing_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("FLASHSIM_CACHE", str(tmp_path / "file"))
    assert Compilation(parts_of(["flashsim.hdd.engine.drive"])).is_over(0)


def test_a_part_that_cannot_be_compiled_stops_nobody(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "cores", lambda: 1)
    parts = [Part("flashsim.core.units", "nothing_of_that_name", seconds=9), *parts_of(["flashsim.core.host_queue"])[:1]]
    Compilation(parts).wait("one of two")
    assert [part.is_kept() for part in parts] == [False, True]


def test_a_damaged_cache_is_compiled_anew(empty_cache: Path) -> None:
    (part, *_) = parts_of(["flashsim.core.host_queue"])
    for damage in (None, b"", b"damaged"):
        if damage is not None:
            for file in empty_cache.rglob("*.kernel"):
                file.write_bytes(damage)
        worker = compiling._worker()
        with worker:
            assert compiling._ask(worker, part) == "compiled\n"
    assert os.listdir(empty_cache)

"""Compiled kernels: the cache is hit by a second process, missed after an edit, and nobody else's."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import cast

import numba
import pytest
from numba import types
from numba.core.errors import TypingError

from flashsim.core import kernel as kernel_module
from flashsim.core.source_files import SourceTree, source_tree

ROOT = Path(kernel_module.__file__).parents[2]
pytestmark = pytest.mark.skipif(not kernel_module.is_compiled(), reason="kernels are not compiled under NUMBA_DISABLE_JIT")

PROGRAM = """
from flashsim.core.kernel import cache_folder
from flashsim.shelf import add
from numba.core import config
print(add(1), cache_folder(add.py_func).name, sum(add.stats.cache_hits.values()), sum(add.stats.cache_misses.values()), config.CACHE_DIR)
"""


def make_copy(folder: Path) -> Path:
    """A small flashsim of its own: the core, and a kernel that uses another module's constant."""
    home = folder / "copy"
    shutil.copytree(ROOT / "flashsim" / "core", home / "flashsim" / "core", ignore=shutil.ignore_patterns("__pycache__"))
    (home / "flashsim" / "__init__.py").write_text("")
    (home / "flashsim" / "step.py").write_text("STEP = 1\n")
    (home / "flashsim" / "between.py").write_text("from flashsim.step import (\n    STEP,\n)\n")
    (home / "flashsim" / "unrelated.py").write_text("")
    shelf = "from flashsim.between import STEP\nfrom flashsim.core.kernel import is_compiled, kernel\n\n\n"
    (home / "flashsim" / "shelf.py").write_text(shelf + "@kernel\ndef add(value: int) -> int:\n    return value + STEP\n")
    return home


def start(home: Path, **settings: str) -> list[str]:
    """What a new process prints: the sum, the cache folder, cache hits, cache misses, and Numba's own cache setting."""
    (home / "program.py").write_text(PROGRAM)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    environment |= {"FLASHSIM_CACHE": str(home / "cache"), "PYTHONPATH": str(home), **settings}
    done = subprocess.run([sys.executable, "program.py"], cwd=home, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split(" ")


@pytest.fixture(scope="module")
def starts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What processes printed that were started one after the other, with edits in between."""
    home = make_copy(tmp_path_factory.mktemp("starts"))
    told = {"first": start(home)}
    (home / "flashsim" / "unrelated.py").write_text("WORDS = 'more'\n")
    told["unrelated edit"] = start(home, NUMBA_CACHE_DIR=str(home / "theirs"))
    (home / "flashsim" / "step.py").write_text("STEP = 41\n")
    told["edit"] = start(home)
    told["files"] = [str(path.relative_to(home)) for path in home.rglob("*.kernel")]
    return told


def test_a_second_process_compiles_nothing(starts: dict[str, list[str]]) -> None:
    total, folder, hits, misses, _ = starts["first"]
    assert (total, hits, misses) == ("2", "0", "1")
    assert starts["unrelated edit"][:4] == ["2", folder, "1", "0"]


def test_a_copy_elsewhere_compiles_nothing(tmp_path: Path) -> None:
    """A second clone, a wheel or a cache that was restored: what counts is what sources say, and not where they stand."""
    first, second = make_copy(tmp_path / "one"), make_copy(tmp_path / "another")
    told = [start(home, FLASHSIM_CACHE=str(tmp_path / "cache"))[:4] for home in (first, second)]
    assert [(total, hits, misses) for total, _, hits, misses in told] == [("2", "0", "1"), ("2", "1", "0")]


def test_processes_that_need_a_kernel_at_once_compile_it_once(tmp_path: Path) -> None:
    home = make_copy(tmp_path)
    (home / "program.py").write_text(PROGRAM)
    environment = os.environ | {"FLASHSIM_CACHE": str(home / "cache"), "PYTHONPATH": str(home)}
    command = [sys.executable, "program.py"]
    processes = [subprocess.Popen(command, cwd=home, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    kept = [process.communicate()[0] for process in processes]
    assert len(kept) == 3 and all(text.startswith("2 ") for text in kept)
    assert sorted(path.suffix for path in (home / "cache").rglob("*.*")) == [".kernel"]


def test_an_edit_in_another_module_is_noticed(starts: dict[str, list[str]]) -> None:
    total, folder, hits, misses, _ = starts["edit"]
    assert (total, hits, misses) == ("42", "0", "1")
    assert folder != starts["first"][1]


@pytest.mark.deep
def test_the_users_own_setting_is_left_alone(starts: dict[str, list[str]]) -> None:
    assert starts["unrelated edit"][-1].strip().endswith("theirs")
    assert starts["first"][-1].strip() == ""
    assert sum("shelf.add" in path for path in starts["files"]) == 2
    assert all(path.startswith("cache/kernels/") for path in starts["files"])


def test_a_function_without_a_file_is_compiled_all_the_same() -> None:
    space: dict[str, object] = {}
    exec("def double(value):\n    return 2 * value\n", space)
    assert kernel_module.kernel(space["double"])(21) == 42  # type: ignore[type-var, operator]


def test_kernels_run_as_plain_python_too(tmp_path: Path) -> None:
    copy = make_copy(tmp_path)
    (copy / "plain.py").write_text(
        "from types import FunctionType\nfrom flashsim.shelf import add\nprint(type(add) is FunctionType, add(1))\n"
    )
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(copy)}
    done = subprocess.run([sys.executable, "plain.py"], cwd=copy, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "2"]


def test_linear_algebra_is_loaded_by_a_kernel_that_needs_it_and_no_sooner(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(
        "import sys\nfrom flashsim.core.kernel import kernel\nimport numpy\nprint('scipy.linalg' in sys.modules)\n"
        "@kernel\ndef product(left, right):\n    return numpy.dot(left, right)\n"
        "print(product(numpy.eye(2), 3 * numpy.eye(2))[1, 1], 'scipy.linalg' in sys.modules)\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT), "FLASHSIM_CACHE": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "kernels.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "3.0", "True"]


def test_a_loaded_kernel_may_make_arrays(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(
        "from flashsim.core.kernel import kernel\nimport numpy\n"
        "@kernel\ndef counted(count):\n    return numpy.arange(count)\n"
        "print(sum(counted(index).sum() for index in range(100)), sum(counted.stats.cache_hits.values()))\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT), "FLASHSIM_CACHE": str(tmp_path / "cache")}
    told = [subprocess.run([sys.executable, "kernels.py"], cwd=tmp_path, env=environment, capture_output=True, text=True) for _ in range(2)]
    assert [(done.returncode, done.stdout.split()) for done in told] == [(0, ["161700", "0"]), (0, ["161700", "1"])]


@pytest.mark.parametrize("imported", ["from helper import step", "import helper; step = helper.step"])
def test_an_edit_beside_a_file_of_ones_own_is_noticed(imported: str, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        f"from flashsim.core.kernel import kernel\n{imported}\n@kernel\ndef stepped(value):\n    return step(value)\nprint(stepped(1))\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT), "FLASHSIM_CACHE": str(tmp_path / "cache")}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"  # Python's own cache takes a file of the same second and length for the same
    told = []
    for step in (1, 1, 41):
        helper = f"from flashsim.core.kernel import kernel\n@kernel\ndef step(value):\n    return value + {step:2}\n"
        (tmp_path / "helper.py").write_text(helper)
        done = subprocess.run([sys.executable, "own.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        told.append(done.stdout.strip())
    assert told == ["2", "2", "42"]


def test_an_edit_in_a_joins_kernel_compiles_no_engine_anew() -> None:
    """Kernels are kept by what their own module imports."""
    genuine = source_tree()
    edited = SourceTree(genuine.sources | {"algorithms.sorting.runs": genuine.sources["algorithms.sorting.runs"] + b"# edited"})

    def kept_as(tree: SourceTree, module: str) -> str:
        return tree.digest(tree.closure([module]))

    for engine in ("flashsim.ssd.engine.drive", "flashsim.hdd.engine.drive"):
        assert kept_as(edited, engine) == kept_as(genuine, engine)
    assert kept_as(edited, "algorithms.sorting.runs") != kept_as(genuine, "algorithms.sorting.runs")


@kernel_module.lean_kernel
def _below(limit: int, value: int) -> bool:
    return value < limit


@kernel_module.lean_kernel
def _digits(value: int) -> int:
    return 1 if _below(10, value) else 2 if _below(limit=100, value=value) else 3


def test_what_kernels_call_is_compiled_once_whatever_constants_they_give_and_without_wrappers() -> None:
    called = cast(kernel_module._Kernel, _below).as_callee
    for limit in (10, 100):
        called.get_call_template([types.literal(limit), types.int64], {})
        called.get_call_template([types.int64], {"value": types.literal(limit)})
    assert len(called.overloads) == 1
    assert called.targetoptions["no_cpython_wrapper"] and called.targetoptions["no_cfunc_wrapper"]


def test_code_of_the_users_own_calls_kernels() -> None:
    @numba.njit  # type: ignore[untyped-decorator]
    def doubled(value: int) -> int:
        return 2 * _digits(value)

    assert [doubled(value) for value in (7, 42, 512)] == [2, 4, 6]


def test_python_calls_compiled_functions_of_others_that_kernels_called_first() -> None:
    @numba.njit  # type: ignore[untyped-decorator]
    def halved(value: int) -> float:
        if value < 0:
            raise ValueError("negative")
        return value / 2

    @kernel_module.kernel
    def quartered(value: int) -> float:
        half: float = halved(value)
        return half / 2

    assert quartered(2) == 0.5 and halved(3) == 1.5
    for function in (quartered, halved):
        with pytest.raises(ValueError, match="negative"):
            function(-1)


@pytest.mark.parametrize(("engine", "most_bytes"), [("ssd", 400_000), ("hdd", 125_000)])
def test_an_engine_becomes_machine_code_once(engine: str, most_bytes: int, tmp_path: Path) -> None:
    """Numba by itself makes machine code of each kernel, and of all that it calls within it again: 160 times for a flash drive.

    Command slots of the host are in both engines, 4 KB of the disk's.
    """
    program = (
        "from numba.core.codegen import CPUCodeLibrary, JITCodeLibrary\nmade = []\noptimise = CPUCodeLibrary._optimize_final_module\n"
        "def counted(code):\n    made.append(code)\n    optimise(code)\nCPUCodeLibrary._optimize_final_module = counted\n"
        f"from flashsim.core.kernel import entry\nfrom flashsim.{engine}.engine import drive\nentry(drive.advance)\nprint(len(made))"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT), "FLASHSIM_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    (kept,) = tmp_path.rglob("*.kernel")
    assert done.stdout.split() == ["2"] and kept.stat().st_size < most_bytes  # the other is Numba's run-time


def test_python_calls_what_kernels_call_too() -> None:
    assert [_digits(value) for value in (7, 42, 512)] == [1, 2, 3]
    assert _below(8, 7) and not _below(7, 7)


def test_the_search_for_garbage_goes_on_after_compiling() -> None:
    @kernel_module.kernel
    def collects() -> int:
        return 1

    for enabled in (False, True):
        (gc.enable if enabled else gc.disable)()
        try:
            assert collects() == 1
            with pytest.raises(TypingError):
                kernel_module.kernel(lambda: undefined)()  # type: ignore[name-defined] # noqa: F821
            assert gc.isenabled() == enabled
        finally:
            gc.enable()

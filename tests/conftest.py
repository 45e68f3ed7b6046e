"""What all tests share: time limits for Hypothesis, and the folder of third-party data."""

from __future__ import annotations

import ctypes
import fcntl
import gc
import os
import re
import signal
import subprocess
import zlib
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import pytest
from hypothesis import HealthCheck, core, settings

import flashsim
from flashsim.apps.programs import attaching
from flashsim.core.source_files import kernels_folder
from flashsim.experiments.runs import jobs
from flashsim.experiments.runs.jobs import Settings
from tests import postgresql_server
from tests.browser import CHROMIUM, Browser
from tests.peak_memory import memory_mb
from tests.tiers import DEEP_RUN, examples, mark_deep
from tests.yardstick import seconds

# Workers of a run side by side are told a terminal of 80 columns, for which tables would be stacked.
os.environ.pop("COLUMNS", None)
# What runs in a shell's background ignores interrupts, and so would what it starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = ["tests.times"]

# The first call of a kernel may compile it, so no deadline.
settings.register_profile(
    "tests", max_examples=examples(100), deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("tests")
#: Megabytes of the test process when garbage was last collected, and how many more it takes until it is collected again.
_KEPT, _MOST_KEPT = pytest.StashKey[float](), 64
#: Gives freed memory back to the system.
_GIVE_BACK = ctypes.CDLL(None).malloc_trim
#: Hypothesis's seed: that of the commit, so that its examples are the same in every run; in a run of the deep tier, that of the day.
_SEED = "FLASHSIM_TESTS_SEED"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--renew", action="store_true", help="Write snapshots of terminal output and outputs of notebooks anew.")
    if _SEED not in os.environ:
        os.environ[_SEED] = str(date.today().toordinal() if DEEP_RUN else _seed_of_commit())


def _seed_of_commit() -> int:
    """A number of the commit that is checked out; of a tree without Git, of the version."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return zlib.crc32((commit.stdout or flashsim.__version__).encode())


def pytest_report_header() -> str:
    """The tier and the seed, to run the same again."""
    return f"tier: {'deep' if DEEP_RUN else 'default'}; FLASHSIM_TESTS_SEED={os.environ[_SEED]}"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out sources without examples, which to import takes longer than to read, and by default files of deep tests alone."""
    if collection_path.suffix != ".py":
        return None
    text = collection_path.read_bytes()
    if not collection_path.is_relative_to(Path(__file__).parent):
        return b">>>" not in text or None
    of_deep_tests = re.search(rb"^pytestmark = .*\bdeep\b", text, re.MULTILINE) is not None
    return (of_deep_tests and config.getoption("-m") == "not deep") or None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect no garbage meanwhile: there is hardly any, and to look for it is a sixth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    mark_deep(items, whole_files=not any("::" in each for each in config.args))


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Measure the yardstick, which processes inherit; in its units are the times that a test, a cluster and strace may take.

    Hypothesis gets the run's seed, where the command line gives none.
    """
    if config.getoption("--hypothesis-seed") is None:
        core.global_force_seed = int(os.environ[_SEED])
    limit = seconds(float(config.getini("timeout")))
    if config.getoption("timeout") is None:
        config.option.timeout = limit
    for module, name in ((jobs, "_REACHED_WITHIN"), (attaching, "_PATIENCE")):
        setattr(module, name, seconds(getattr(module, name)))


def pytest_itemcollected(item: pytest.Item) -> None:
    """The same for a test that states its own time."""
    if marker := item.get_closest_marker("timeout"):
        item.add_marker(pytest.mark.timeout(seconds(*marker.args)), append=False)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Keep the garbage collector from going through all the tests, again and again, to the end of the session."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Free what tests leave: drives refer to themselves, and however large they are, the collector counts few objects of them."""
    kept = item.config.stash.get(_KEPT, 0.0)
    if memory_mb() > kept + _MOST_KEPT:
        gc.collect()
        _GIVE_BACK(0)
        item.config.stash[_KEPT] = memory_mb()


@pytest.fixture(scope="session")
def test_data() -> Path:
    """The folder of third-party data; the test is skipped where none is set."""
    folder = os.environ.get("FLASHSIM_TEST_DATA")
    if not folder:
        pytest.skip("FLASHSIM_TEST_DATA is unset")
    return Path(folder)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A Chromium; the test is skipped where none is installed."""
    if not CHROMIUM:
        pytest.skip("Chromium is not installed")
    with Browser(CHROMIUM, tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@pytest.fixture(scope="session")
def postgresql() -> Iterator[postgresql_server.Cluster]:
    """A cluster that a PostgreSQL server of the tests' own serves; the test is skipped where none is installed."""
    if not postgresql_server.programs():
        pytest.skip("PostgreSQL is not installed")
    with postgresql_server.cluster() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], None]], Path]:
    """Folder of a name, which is filled by whichever test process comes first."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def folder(name: str, fill: Callable[[Path], None]) -> Path:
        place = base / name
        with place.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not place.exists():
                place.mkdir()
                fill(place)
        return place

    return folder


@pytest.fixture(scope="session")
def small_scale() -> float:
    """The scale of examples in help texts; every run of do2009 has been made at it and kept, by whichever test process came first."""
    from flashsim.apps.papers import base as papers  # with what draws and judges, which not every process of tests needs

    scale, paper = 0.01, papers.load("do2009")
    claims = [claim.id for claim in paper.claims]
    place = kernels_folder()
    place.mkdir(parents=True, exist_ok=True)
    with (place / "small-scale.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = Settings(scale, jobs=os.cpu_count() or 1)
        jobs.make([job for name in paper.exhibits if paper.is_run(name, scale) for job in paper.exhibit(name).jobs(claims, wanted)], wanted)
    return scale

"""Independent runs: each is made once, several processes at a time, and kept, so that an interrupted reproduction goes on where it stopped.

Processes make no noise when they are interrupted, and the process that started them shows their progress.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from inspect import signature
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, TypeVar

import joblib
from joblib.externals.loky.backend import resource_tracker as lokys_tracker

from flashsim.core.activity import report_share, show_shares_by, show_workers_by
from flashsim.core.compiling import Compilation, Part, parts_of
from flashsim.core.errors import FlashsimError, InvalidParameterError
from flashsim.core.processes import call_watched
from flashsim.core.protocols import Progress
from flashsim.core.source_files import source_tree
from flashsim.experiments.runs import kept
from flashsim.ssd.ftl.base import TRANSLATE
from flashsim.ssd.gc.base import VICTIM
from flashsim.ssd.wear.base import LEVELS, OPENS

#: Seconds in which a cluster must answer.
_REACHED_WITHIN = 10
#: Seconds between two messages of a worker, and for how long each is shown where there are several.
_OFTEN, _SHOWN = 0.5, 2.0

Item = TypeVar("Item")
Result = TypeVar("Result")


def each(
    function: Callable[[Item], Result], items: Sequence[Item], jobs: int, cluster: str | None = None,
    tell: Callable[[str, float], None] = lambda message, share: None,
) -> Iterator[tuple[Item, Result]]:  # fmt: skip
    """Call a function on every item, `jobs` at a time; pairs of item and result come as they are finished.

    The workers of a Dask scheduler (`cluster`) take the processes' place.  `tell` is called now and then with what a process does, and the
    sum of the shares of unfinished runs that `flashsim.core.activity.report_share` was told.
    """
    if cluster is not None:
        yield from _on_cluster(function, items, cluster)
        return
    workers = min(jobs, len(items))
    if workers <= 1:
        before = show_shares_by(lambda share: tell("", share))
        try:
            yield from ((item, function(item)) for item in items)
        finally:
            show_shares_by(before)
        return
    warnings.filterwarnings("ignore", "A worker stopped while some jobs were given")  # one that grew was replaced: no loss
    pool = joblib.Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1)
    try:
        with worker_messages(tell) as folder:
            yield from _start(
                pool, [joblib.delayed(call_watched)(os.getpid(), _pair_of, function, item, folder, os.getcwd()) for item in items]
            )
    except BrokenProcessPool as problem:
        raise FlashsimError("jobs: a worker process was killed, perhaps for want of memory; use fewer jobs or a smaller scale") from problem


def _on_cluster(function: Callable[[Item], Result], items: Sequence[Item], address: str) -> Iterator[tuple[Item, Result]]:
    if not items:
        return
    try:
        from distributed import Client
        from distributed.comm.addressing import resolve_address
    except ImportError:
        raise FlashsimError("cluster: Dask is not installed; pip install 'flashsim[cluster]'") from None
    try:
        resolve_address(address)  # a client that is given no address at all stays half open
        client = Client(address, timeout=_REACHED_WITHIN, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, ImportError) as problem:  # by whether it answers, and whether it is an address at all
        raise FlashsimError(f"cluster: no Dask scheduler answers at {address}") from problem
    with client, joblib.parallel_config("dask", client=client):
        workers = len(client.scheduler_info(n_workers=-1)["workers"])
        if not workers:
            raise FlashsimError(f"cluster: the scheduler at {address} has no workers")
        pool = joblib.Parallel(n_jobs=-1, return_as="generator_unordered", batch_size=1)
        yield from pool(joblib.delayed(_pair_of)(function, item) for item in items)


def _pair_of(function: Callable[[Item], Result], item: Item, folder: str | None = None, here: str | None = None) -> tuple[Item, Result]:
    if here is not None:
        os.chdir(here)  # a process that was started for runs before is where these were asked for, and files may be named from here
    if folder is not None:
        leave_messages(folder)
    return item, function(item)


def _start(pool: Any, tasks: Sequence[Any]) -> Any:
    """Start the processes with interrupts blocked: a terminal interrupts all, but only this process shall answer."""
    for tracker in (resource_tracker, lokys_tracker):  # they unblock interrupts when they start, so they go first
        tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return pool(tasks)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def worker_messages(tell: Callable[[str, float], None]) -> Iterator[str]:
    """A folder where workers leave what they do; `tell` is handed it from a thread, one worker after the other, and the sum of shares."""
    stop = threading.Event()

    def listen() -> None:
        while not stop.wait(_OFTEN):
            messages, shares = list[str](), 0.0
            for path in sorted(Path(folder).iterdir()):
                with suppress(OSError, ValueError):  # the worker has ended meanwhile, or is writing
                    share, message = path.read_text(encoding="utf-8").split(" ", 1)
                    messages, shares = [*messages, message], shares + float(share)
            if messages:
                tell(messages[int(time.monotonic() / _SHOWN) % len(messages)], shares)

    with tempfile.TemporaryDirectory(prefix="flashsim-") as folder:
        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        try:
            yield folder
        finally:
            stop.set()
            thread.join()


def leave_messages(folder: str) -> None:
    """Leave what this process does in a folder from now on."""
    file, share_of_run = Path(folder, str(os.getpid())), 0.0

    @contextmanager
    def show(what: str) -> Iterator[Progress]:
        last = 0.0

        def tell(done: float, total: float, message: str = "") -> None:
            nonlocal last
            if time.monotonic() - last >= _OFTEN:
                last = time.monotonic()
                share = f" {done / total:.0%}" if total else ""
                with suppress(OSError):  # nobody listens any more
                    file.write_text(f"{share_of_run:.4f} {f'{what}{share} {message}'.strip()}", encoding="utf-8")

        tell(0, 0)
        try:
            yield tell
        finally:
            with suppress(OSError):
                file.unlink()

    def take(share: float) -> None:
        nonlocal share_of_run
        share_of_run = share

    show_workers_by(show)
    show_shares_by(take)


#: Policies of most drives that map single pages.
_BESIDE_PAGES = ((VICTIM, "greedy"), (OPENS, "dynamic"), (LEVELS, "dynamic"))
#: Kinds of simulated drives.
KINDS = ("hdd", "ssd")
#: Devices below scale 1 (`flashsim.experiments.runs.drives`); the first is the default.
SHIPS_MODEL, AS_THEY_ARE = DEVICES = ("ships-model", "as-they-are")


@dataclass(frozen=True)
class Settings:
    """Scale, processes and seed of runs."""

    #: Multiplies tuples and memory.
    scale: float = 1.0
    #: Processes at the same time, or instead of them the address of a Dask scheduler whose workers make the runs (`cluster`).
    jobs: int = 1
    seed: int = 2009
    #: Make runs again whose results are kept.
    fresh: bool = False
    cluster: str | None = None
    #: Devices below scale 1: one of `DEVICES`.
    devices: str = SHIPS_MODEL

    def __post_init__(self) -> None:
        if self.jobs < 1:
            raise InvalidParameterError("jobs", self.jobs, "it must be at least 1")

    @property
    def ships_model(self) -> bool:
        """Drives and file system shrink with relations and memory."""
        return self.scale != 1 and self.devices == SHIPS_MODEL

    @property
    def scale_in_words(self) -> str:
        """The scale, and below 1 what becomes of the devices, such as ``scale 0.1 (ships-model)``."""
        return "scale 1" if self.scale == 1 else f"scale {self.scale:g} ({self.devices})"


@dataclass(frozen=True)
class Job:
    """A run: a function, by its name as ``package.module:name``, its named arguments as JSON, and a label for people; by `of`."""

    function: str
    arguments: str
    label: str = ""
    #: Runs with more are made first, so that no process is left with a long one at the end.
    weight: float = field(default=0.0, compare=False)
    #: Runs of one group share work: one process makes them, one after the other.
    group: str = field(default="", compare=False)
    #: Whether simulated drives have a part in the run: then their engines are compiled before.
    drives: bool = field(default=True, compare=False)

    @classmethod
    def of(cls, function: str | Callable[..., Any], label: str = "", group: str = "", drives: bool = True, **arguments: Any) -> Job:
        """The run of a function, itself or as ``package.module:name``, with arguments that it takes; none is named as this method's."""
        name = function if isinstance(function, str) else f"{function.__module__}:{function.__qualname__}"
        signature(_function(name) if isinstance(function, str) else function).bind(**arguments)
        return cls(name, json.dumps(arguments, sort_keys=True), label, group=group, drives=drives)

    @cached_property
    def id(self) -> str:
        """The name under which the result is kept: of its arguments, the versions and all sources that it rests on."""
        return kept.identity({"function": self.function, "arguments": self.arguments}, self.module)

    @property
    def origin(self) -> dict[str, Any]:
        return {"function": self.function, "parameters": self.parameters}

    @property
    def module(self) -> str:
        return self.function.partition(":")[0]

    @property
    def parameters(self) -> dict[str, Any]:
        arguments: dict[str, Any] = json.loads(self.arguments)
        return arguments

    def make(self) -> Any:
        return _function(self.function)(**self.parameters)


def _function(name: str) -> Callable[..., Any]:
    module, _, function = name.partition(":")
    run: Callable[..., Any] = getattr(import_module(module), function)
    return run


@dataclass(frozen=True)
class JobResult:
    """A run's result and seconds, and whether it is kept from an earlier run."""

    result: Any
    seconds: float
    recalled: bool


class Results(dict[Job, Any]):
    """Results of runs, by run."""

    def __init__(self, settings: Settings, runs: Mapping[Job, JobResult]) -> None:
        super().__init__({job: run.result for job, run in runs.items()})
        self.settings, self.runs = settings, runs


def make(
    jobs: Iterable[Job], settings: Settings, progress: Progress | None = None, layers: Sequence[str] = (),
    parts: Sequence[Part] | None = None, kinds: Sequence[str] = KINDS, more: Sequence[Part] = (),
) -> Results:  # fmt: skip
    """Make every run once, as many at a time as the settings say; those kept from earlier are not made again.

    What a machine has not compiled yet is compiled first, since every process would only repeat it: the `parts`, if all are known, or else
    what the runs' modules import, engines of drives of the `kinds` with the flash translation `layers`, and the `more` parts.  A process
    that is killed is a FlashsimError; whatever else a run raises is raised as well.
    """
    distinct = list(dict.fromkeys(jobs))
    runs: dict[Job, JobResult] = {}
    for job in distinct if not settings.fresh else ():
        match kept.recall(job.id):  # unless it is a file that this function did not write
            case {"result": result, "seconds": int() | float() as seconds, **origin} if origin == job.origin:
                runs[job] = JobResult(result, seconds, recalled=True)
    missing = sorted((job for job in distinct if job not in runs), key=lambda job: -job.weight)
    if settings.cluster is None and missing and (len(missing) > 1 or parts is not None):
        on_drives = (layers, kinds) if any(job.drives for job in missing) else ((), ())
        needed = [*_parts({job.module for job in missing}, *on_drives), *more] if parts is None else parts
        Compilation(needed).wait("the engines")

    done = 0.0

    def tell(message: str, shares: float = 0.0) -> None:
        nonlocal done
        if progress is not None:
            done = max(done, len(runs) + shares)  # the share of a worker is not there between two activities
            progress(done, len(distinct), message)

    groups: dict[Any, list[Job]] = {}
    for job in missing:
        groups.setdefault(job.group or job, []).append(job)
    for group, outcomes in each(_run_and_time_all, list(groups.values()), settings.jobs, settings.cluster, tell):
        for job, (value, seconds) in zip(group, outcomes, strict=True):
            kept.keep(job.origin | {"seconds": seconds, "result": value}, job.id)
            runs[job] = JobResult(value, seconds, recalled=False)
            tell(job.label)
    return Results(settings, {job: runs[job] for job in distinct})


def _parts(modules: set[str], layers: Sequence[str], kinds: Sequence[str] = KINDS) -> list[Part]:
    """Parts that runs compile; rarer devices than flash drives and disks are left to the first process that makes one."""
    engines = source_tree().closure(modules, members=True) & {f"flashsim.{kind}.engine.drive" for kind in kinds}
    return parts_of(modules | engines, [*((TRANSLATE, layer) for layer in layers), *(_BESIDE_PAGES if "page" in layers else ())])


def _run_and_time(job: Job) -> tuple[Any, float]:
    """The result of a run, as its kept form would be read, and its seconds."""
    begin, frozen = time.perf_counter(), gc.get_freeze_count()
    report_share(0.0)
    if not frozen:
        gc.freeze()  # what was there before stays, and to look through it takes longer than a short run, the longer a session has lasted
    try:
        result = json.loads(json.dumps(job.make()))
    finally:
        gc.collect()  # drives and their machines refer to each other, and their tables take far more memory than objects that Python counts
        if not frozen:
            gc.unfreeze()
    return result, time.perf_counter() - begin


def _run_and_time_all(jobs: Sequence[Job]) -> list[tuple[Any, float]]:
    return [_run_and_time(job) for job in jobs]

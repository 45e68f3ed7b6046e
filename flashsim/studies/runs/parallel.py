"""Several processes at a time, without noise when they are interrupted, whose progress the process that started them shows."""

import os
import signal
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, TypeVar

import joblib
from joblib.externals.loky.backend import resource_tracker as lokys_tracker

from flashsim.core.activity import show_workers_by
from flashsim.core.errors import FlashsimError
from flashsim.core.processes import watched
from flashsim.core.protocols import Progress

#: Seconds in which a cluster must answer.
_REACHED_WITHIN = 10
#: Seconds between two messages of a worker, and for how long each is shown where there are several.
_OFTEN, _SHOWN = 0.5, 2.0

Item = TypeVar("Item")
Result = TypeVar("Result")


def each(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    jobs: int,
    cluster: str | None = None,
    tell: Callable[[str], None] = lambda message: None,
) -> Iterator[tuple[Item, Result]]:
    """Call a function on every item, `jobs` at a time; pairs of item and result come as they are finished.

    The workers of a Dask scheduler (`cluster`) take the processes' place.  `tell` is called now and then with what a process does.
    """
    if cluster is not None:
        yield from _on_cluster(function, items, cluster)
        return
    workers = min(jobs, len(items))
    if workers <= 1:
        for item in items:
            yield item, function(item)
        return
    warnings.filterwarnings("ignore", "A worker stopped while some jobs were given")  # one that grew was replaced: no loss
    pool = joblib.Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1)
    try:
        with worker_messages(tell) as folder:
            yield from _start(pool, [joblib.delayed(watched)(os.getpid(), _pair_of, function, item, folder, os.getcwd()) for item in items])
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
def worker_messages(tell: Callable[[str], None]) -> Iterator[str]:
    """A folder where workers leave what they do; `tell` is handed it from a thread, one worker after the other."""
    stop = threading.Event()

    def listen() -> None:
        while not stop.wait(_OFTEN):
            messages = []
            for path in sorted(Path(folder).iterdir()):
                with suppress(OSError, UnicodeDecodeError):  # the worker has ended meanwhile, or is writing
                    messages.append(path.read_text(encoding="utf-8"))
            if messages := [*filter(None, messages)]:
                tell(messages[int(time.monotonic() / _SHOWN) % len(messages)])

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
    file = Path(folder, str(os.getpid()))

    @contextmanager
    def show(what: str) -> Iterator[Progress]:
        last = 0.0

        def tell(done: float, total: float, message: str = "") -> None:
            nonlocal last
            if time.monotonic() - last >= _OFTEN:
                last = time.monotonic()
                share = f" {done / total:.0%}" if total else ""
                with suppress(OSError):  # nobody listens any more
                    file.write_text(f"{what}{share} {message}".strip(), encoding="utf-8")

        tell(0, 0)
        try:
            yield tell
        finally:
            with suppress(OSError):
                file.unlink()

    show_workers_by(show)

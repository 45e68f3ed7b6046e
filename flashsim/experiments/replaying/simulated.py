"""Replay a trace on a simulated device, window by window, so that memory does not grow with the trace."""

import warnings
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from flashsim.core.errors import WRAP, CapacityError, FlashsimWarning, InvalidParameterError
from flashsim.core.protocols import Progress
from flashsim.core.request import COMPLETION, REQUEST, SECTOR, Completions, Integers, Requests
from flashsim.core.units import NEVER, format_size
from flashsim.device.device import Device
from flashsim.experiments.replaying.observation import Observation
from flashsim.experiments.replaying.survey import WINDOW, Survey, column, first_requests, fit, warn_of
from traces.file.excerpt import Source, requests_of
from traces.file.schema import Batches, make_batch
from traces.replay.base import Observer

PACES = ("asap", "timed", "think")
#: Columns of a trace that requests have too.
_OF_REQUESTS = ("operation", "priority", "stream", "flags", "offset", "length", "tag", "think")


@dataclass(frozen=True)
class ReplaySettings:
    """Settings of a replay on a simulated device; `scale_offsets`: wrap requests beyond its end around to its begin.

    Pace ``asap``: `depth` clients take the requests in turns, each its next one when its last has completed.  ``timed``: as the trace says,
    late or not.  ``think``: each request so long after the one it waited for as in the trace.
    """

    pace: str
    depth: int = 1
    scale_offsets: bool = False

    def __post_init__(self) -> None:
        if self.pace not in PACES:
            raise InvalidParameterError("pace", repr(self.pace), f"it must be one of {', '.join(PACES)}")
        if not 1 <= self.depth <= WINDOW // 2:
            raise InvalidParameterError("depth", self.depth, f"it must be in [1, {WINDOW // 2}]")


def replay(
    source: Source, device: Device, settings: ReplaySettings, what: Survey, observe: Observer, limit: int | None = None,
    progress: Progress | None = None, observation: Observation | None = None,
) -> int:  # fmt: skip
    """Send the requests of a trace to a device; return the number of requests that `scale_offsets` moved.

    An `observation` looks at the device as time passes; that changes nothing of what happens.

    At the end of a window, ``asap`` and ``think`` let all requests complete before the next one begins; ``think`` ends windows where
    the request that is waited for changes.  ``timed`` never waits, and needs times that go back by at most a window.  All devices of the
    trace are replayed on the one device.
    """
    if what.reach > device.capacity and not settings.scale_offsets:
        holds = f"{device.name} holds {format_size(device.capacity)}; add "
        raise CapacityError(f"trace: it reaches to {format_size(what.reach)}, but {holds}" + WRAP + " to wrap it around")
    if settings.pace == "timed" and not what.timed:
        raise InvalidParameterError("pace", "timed", "the trace does not say when requests arrived; take asap or think")
    warn_of(what, settings.pace)
    windows = first_requests(requests_of(source), limit)
    run = _Replay(device, settings, observe, observation)
    for batch in _regroup(windows) if settings.pace == "think" else windows:
        run.window(batch)
        if progress:
            progress(run.completions, what.requests)
    run.finish()
    if observation:
        observation.finish()
    if run.widened:
        warnings.warn(f"trace: {run.widened:,} requests were widened to whole sectors of {SECTOR} B", FlashsimWarning, stacklevel=2)
    return run.wraps


class _Replay:
    """The state of a replay: numbers of requests, and completions of the windows that are open."""

    def __init__(self, device: Device, settings: ReplaySettings, observe: Observer, observation: Observation | None) -> None:
        self.device, self.settings, self.observe, self.observation = device, settings, observe, observation
        self.wraps = self.widened = self.completions = 0
        self._open: deque[tuple[pa.RecordBatch, Requests, Completions]] = deque()
        self._sent_count = self._seen_count = 0
        self._origin: int | None = None
        self._first_id: int | None = None
        self._last = np.zeros(0, np.int64)  # completion times of the window before

    def window(self, batch: pa.RecordBatch) -> None:
        requests = self._requests(batch)
        arrival = batch.column("arrival").fill_null(0).to_numpy()
        if self._origin is None:
            self._origin = int(arrival.min()) - self.device.now
        at: int | Integers = arrival - self._origin
        if self.settings.pace == "timed":
            if int(np.min(at)) > self.device.now + 1:
                self._advance(int(np.min(at)) - 1)
            if int(np.min(at)) < self.device.now:
                raise InvalidParameterError("arrival", f"{int(np.min(arrival))} ns", f"times go back by more than {WINDOW} requests")
        elif self.settings.pace == "asap":
            requests["dependency"] = np.maximum(np.arange(len(requests)) - self.settings.depth, -1)
            at = self.device.now
        else:
            at = self._waiting(batch, requests, np.maximum(np.where(batch.column("arrival").is_valid(), at, 0), self.device.now))
        ids = self.device.submit(requests, at)
        self._first_id = int(ids[0]) if self._first_id is None else self._first_id
        completions = np.zeros(len(requests), COMPLETION)
        completions["completed"] = -1
        self._open.append((batch, requests, completions))
        self._sent_count += len(requests)
        if self.settings.pace != "timed":
            self.finish()

    def finish(self) -> None:
        self._advance(NEVER)

    def _advance(self, until: int) -> None:
        """Run up to a time, or until all have completed (NEVER), and stop on the way where the observation wants to look.

        Where all complete before a look is due, the clock stays at the last completion.
        """
        while self.observation and (due := self.observation.next) < until:
            if until < NEVER:
                self._collect(self.device.advance(due, every=True))
            elif waiting := self.device.outstanding:
                self._collect(self.device.advance(due, wait=waiting))
            else:
                break
        self._collect(self.device.advance(until, every=True))

    def _requests(self, batch: pa.RecordBatch) -> Requests:
        requests = np.zeros(batch.num_rows, REQUEST)
        for name in ("operation", "priority", "stream", "flags", "tag"):
            requests[name] = column(batch, name)
        requests["dependency"], end = -1, self.device.capacity // SECTOR * SECTOR
        requests["offset"], requests["length"], widened, wraps = fit(batch, SECTOR, end)
        if (longest := int(requests["length"].max())) > end:
            raise CapacityError(f"trace: a request of {format_size(longest)}, but the device holds {format_size(end)}")
        self.widened, self.wraps = self.widened + widened, self.wraps + wraps
        return requests

    def _waiting(self, batch: pa.RecordBatch, requests: Requests, at: Integers) -> Integers:
        dependency, first = column(batch, "dependency"), self._sent_count
        think = requests["think"] = column(batch, "think")
        requests["dependency"] = np.where(dependency >= first, dependency - first, -1)
        before = (dependency >= 0) & (dependency < first)
        place = dependency[before] - (first - len(self._last))
        if (place < 0).any():
            row = first + int(np.flatnonzero(before)[np.argmax(place < 0)])
            link = f"request {row} waits for {dependency[row - first]}"
            raise InvalidParameterError("dependency", link, f"it may be {WINDOW} back at most")
        arrival = at.copy()
        arrival[before] = np.maximum(self._last[place] + think[before], self.device.now)
        return arrival

    def _collect(self, completions: Completions) -> None:
        if self.observation:
            self.observation.look()
        if len(completions) and self._first_id is not None:
            first = self._seen_count
            place: Integers = completions["id"] - self._first_id
            for _, _, own_completions in self._open:
                mine = (place >= first) & (place < first + len(own_completions)) if len(self._open) > 1 else slice(None)
                own_completions[place[mine] - first] = completions[mine]
                first += len(own_completions)
            self.completions += len(completions)
        while self._open and (self._open[0][2]["completed"] >= 0).all():
            batch, requests, own_completions = self._open.popleft()
            dependency, first = requests["dependency"], self._seen_count
            dependency = column(batch, "dependency") if self.settings.pace == "think" else np.where(dependency >= 0, dependency + first, -1)
            columns: dict[str, Any] = {name: requests[name] for name in _OF_REQUESTS}
            columns |= {"dependency": dependency, "arrival": own_completions["submitted"]}
            columns |= {name: own_completions[name] for name in ("started", "completed")}
            self.observe(make_batch(columns, first, batch.column("label")), own_completions)
            self._seen_count += len(own_completions)
            self._last = own_completions["completed"].copy()


def _regroup(batches: Batches) -> Iterator[pa.RecordBatch]:
    """The same requests, cut only where more than a window has come, and there where the request that is waited for changes, if it does."""
    rest: pa.RecordBatch | None = None
    for batch in batches:
        both = [batch] if rest is None else [rest, batch]
        whole = pa.Table.from_batches(both).unify_dictionaries().combine_chunks().to_batches()[0]
        if whole.num_rows < WINDOW:
            rest = whole
            continue
        changes = np.flatnonzero(np.diff(column(whole, "dependency")))
        end = int(changes[-1]) + 1 if len(changes) else 0
        if end:
            yield whole.slice(0, end)
        rest = whole.slice(end)
        if rest.num_rows >= WINDOW:
            yield rest
            rest = None
    if rest is not None:
        yield rest


def observers(*every: Observer) -> Observer:
    def tell(batch: pa.RecordBatch, completions: Completions) -> None:
        for observe in every:
            observe(batch, completions)

    return tell

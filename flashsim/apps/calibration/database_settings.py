"""Settings by which databases count a drive's reads and writes, of a drive's model: by simulation, and by formula."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flashsim.apps.calibration.drive_figures import DriveLoad
from flashsim.apps.calibration.figure_runs import results_of
from flashsim.core.errors import InvalidParameterError
from flashsim.core.protocols import Progress
from flashsim.core.request import READ, WRITE, make_requests
from flashsim.core.rng import generator
from flashsim.core.units import KIB, SECONDS
from flashsim.device.device import Device
from flashsim.device.presets import Preset, refuse_zoned
from flashsim.ssd.parameters import SsdParameters
from models.write_amplification import alpha_of_pages, greedy

#: Bytes of a page of PostgreSQL and of InnoDB, and of a request of Linux's read-ahead, of which two are under way.
PAGE, INNODB_PAGE, READ_AHEAD = 8 * KIB, 16 * KIB, 128 * KIB
#: Depths of random reads, and bytes of reads in order, that are tried: up to PostgreSQL's largest ``io_combine_limit``.
DEPTHS, SIZES = tuple(1 << n for n in range(9)), tuple(PAGE << n for n in range(8))
#: Shares of the greatest rate that count as reached: the one of a setting, and those of its interval.
_REACHED = (0.9, 0.8, 0.95)
#: Background writes of InnoDB that are under way.
_WRITES = 8
#: Requests of a load, and seeds.
_REQUESTS, _SEEDS = 2000, 3

_RANDOM = {depth: DriveLoad(READ, PAGE, depth=depth) for depth in DEPTHS}
_IN_ORDER = {size: DriveLoad(READ, size, random=False) for size in SIZES}
_AHEAD = DriveLoad(READ, READ_AHEAD, random=False, depth=2)
_STEADY = DriveLoad(WRITE, INNODB_PAGE, depth=_WRITES, state="steady")


@dataclass(frozen=True)
class DatabaseSetting:
    """A setting of a database: its simulated value and interval, and its value by formula (None: there is no formula)."""

    database: str
    name: str
    #: Bytes, requests, requests a second, or a ratio.
    value: float
    low: float
    high: float
    formula: float | None
    meaning: str


#: The meaning of each setting, by database and name.
MEANINGS = {
    ("PostgreSQL", "seq_page_cost"): "the unit: a page of 8 KiB read in order, with read-ahead of 128 KiB",
    ("PostgreSQL", "random_page_cost"): "a page read at random, alone, over one read in order, less the share that is cached; at least 1",
    ("PostgreSQL", "effective_io_concurrency"): "least number of random reads under way that reach 90 % of the greatest rate",
    ("PostgreSQL", "io_combine_limit"): "least size of reads in order, one at a time, that reaches 90 % of the rate of 1 MiB",
    ("InnoDB", "innodb_io_capacity"): "half of innodb_io_capacity_max, as is the default",
    ("InnoDB", "innodb_io_capacity_max"): "random writes of 16 KiB a second, 8 under way, that the drive sustains when it is full",
}


def settings_of(preset: Preset, cached: float = 0.9, seed: int = 0, progress: Progress | None = None) -> list[DatabaseSetting]:
    """Settings for a drive, of which a share of random reads is `cached`.

    An interval spans three seeds and, of the depth and the size, 80 to 95 % of the greatest rate.

    Raises
    ------
    InvalidParameterError
        `cached` is not in [0, 1).
    RefusedError
        The drive is zoned.
    """
    if not 0 <= cached < 1:
        raise InvalidParameterError("cached", cached, "a share of at least 0 and below 1 is needed")
    refuse_zoned(preset, "its reads can be measured")
    runs = list[Mapping[DriveLoad, Mapping[str, float]]]()
    for number in range(_SEEDS):
        runs.append(_simulate(preset, seed + number))
        if progress:
            progress(number + 1, _SEEDS)
    formulas = _flash_formulas(preset.flash, cached) if preset.flash else _disk_formulas(preset, cached)
    settings = [DatabaseSetting("PostgreSQL", "seq_page_cost", 1.0, 1.0, 1.0, 1.0, MEANINGS["PostgreSQL", "seq_page_cost"])]
    for (database, name), derive in _DERIVED.items():
        values = [[derive(run, cached, reached) for reached in _REACHED] for run in runs]
        middle, every = float(np.median([row[0] for row in values])), np.ravel(values)
        meaning = MEANINGS[database, name]
        settings.append(DatabaseSetting(database, name, middle, float(every.min()), float(every.max()), formulas.get(name), meaning))
    return settings


def _page_cost(random: float, in_order: float, cached: float) -> float:
    """The cost of a page read at random, of ns that either kind takes."""
    return max(1.0, (1 - cached) * random / in_order)


def _least(rates: Mapping[int, float], reached: float) -> float:
    most = max(rates.values())
    return float(min(each for each, rate in rates.items() if rate >= reached * most))


Run = Mapping[DriveLoad, Mapping[str, float]]
#: Settings from the figures of a run, the share that is cached, and the share of the greatest rate that counts as reached.
_DERIVED: dict[tuple[str, str], Callable[[Run, float, float], float]] = {
    ("PostgreSQL", "random_page_cost"): lambda run, cached, _: _page_cost(
        run[_RANDOM[1]]["mean"], PAGE * SECONDS / run[_AHEAD]["bandwidth"], cached
    ),
    ("PostgreSQL", "effective_io_concurrency"): lambda run, _, reached: _least(
        {depth: run[load]["iops"] for depth, load in _RANDOM.items()}, reached
    ),
    ("PostgreSQL", "io_combine_limit"): lambda run, _, reached: _least(
        {size: run[load]["bandwidth"] for size, load in _IN_ORDER.items()}, reached
    ),
    ("InnoDB", "innodb_io_capacity"): lambda run, *_: run[_STEADY]["iops"] / 2,
    ("InnoDB", "innodb_io_capacity_max"): lambda run, *_: run[_STEADY]["iops"],
}


def _simulate(preset: Preset, seed: int) -> Run:
    reads, writes = [*_RANDOM.values(), *_IN_ORDER.values(), _AHEAD], [_STEADY]
    if preset.flash:
        return results_of(preset, reads, seed, _REQUESTS) | results_of(preset, writes, seed, _REQUESTS)
    return {load: _disk_result(preset, load, seed) for load in [*reads, *writes]}


def _disk_result(preset: Preset, load: DriveLoad, seed: int) -> dict[str, float]:
    """Figures of a disk under a load over its whole capacity: ``iops``, ``bandwidth`` (bytes a second) and ``mean`` (ns)."""
    device, random = Device(preset), generator(seed, "settings", str(load))
    area, count = device.capacity // load.size, _REQUESTS // 2
    places = random.integers(0, area, count) if load.random else np.arange(count)
    requests = make_requests(load.operation, places * load.size, load.size)
    requests["dependency"] = np.maximum(np.arange(count) - load.depth, -1)
    completions = device.serve(requests, settle=False)
    ends = np.sort(completions["completed"])
    rate = (count // 2) * SECONDS / max(1, int(ends[3 * count // 4 - 1] - ends[count // 4 - 1]))
    mean = float((completions["completed"] - completions["submitted"]).mean())
    return {"iops": rate, "bandwidth": rate * load.size, "mean": mean if load.depth == 1 else load.depth * SECONDS / rate}


def _flash_formulas(flash: SsdParameters, cached: float) -> dict[str, float]:
    """Settings by a flash drive's parameters.

    A read alone takes the controller, the cells, the channel and the link in turn; many at once are bounded by dies, channels and the link,
    and at least as many are needed as Little's law says: it has all dies equally busy, as reads at random places do not keep them.  A read
    of read-ahead takes what the die takes for pages that were programmed at once.  Writes take turns of all dies, which read what they
    move; write amplification is greedy's (Desnoyers, equation 12).
    """
    cells, program = (
        float(np.mean(each or (one,))) for each, one in ((flash.read_pages, flash.read), (flash.program_pages, flash.program))
    )
    channel, link = (PAGE * SECONDS / rate for rate in (flash.channel_rate, flash.link_read_rate))
    alone = flash.read_latency + cells + channel + link
    per_read = max((cells + channel) / flash.dies, channel / flash.channels, link)
    together = flash.group * flash.unit_size
    on_a_die = min(READ_AHEAD, together)
    die = cells * on_a_die / flash.page_size + on_a_die * SECONDS / flash.channel_rate
    whole = READ_AHEAD * SECONDS / flash.link_read_rate
    ahead = max(whole, (flash.read_latency + die + whole) / _AHEAD.depth)
    reached = _REACHED[0] / (1 - _REACHED[0])
    size = reached * (flash.read_latency + cells) / SECONDS * flash.link_read_rate
    planes = flash.planes_per_die if flash.multi_plane else 1
    amplification = greedy(alpha_of_pages(flash.usable_pages, flash.logical_pages), flash.slots_per_block)
    moves = (1 - 1 / amplification) * flash.group * cells  # pages that are moved are read one by one
    programmed = flash.dies * planes * together / (program + planes * (moves + together * SECONDS / flash.channel_rate))
    writes = programmed * SECONDS / amplification / INNODB_PAGE
    return {
        "random_page_cost": _page_cost(alone, ahead * PAGE / READ_AHEAD, cached),
        "effective_io_concurrency": max(1.0, _REACHED[0] * alone / per_read),
        "io_combine_limit": min(max(size, SIZES[0]), SIZES[-1]),
        "innodb_io_capacity": writes / 2,
        "innodb_io_capacity_max": writes,
    }


def _disk_formulas(preset: Preset, cached: float) -> dict[str, float]:
    """Settings by a disk's nominal figures: a seek, half a revolution and the transfer."""
    cited: dict[str, Any] = preset.cited.as_dict()
    names: Sequence[str] = ("mean_seek", "rotational_latency", "sequential_read")
    if not all(cited.get(name) for name in names):
        return {}
    seek, wait, rate = (float(cited[name]) for name in names)
    in_order = PAGE * SECONDS / rate
    return {"random_page_cost": _page_cost(seek + wait + in_order, in_order, cached)}

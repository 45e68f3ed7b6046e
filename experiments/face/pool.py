"""``fs.pool``: transactions on a memory pool that an SSD extends, by design."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from experiments.face._outcome import Outcome, Picture, point_of
from experiments.face._units import count, duration, number, several, size, text
from experiments.face._working import working
from experiments.face.drive import Drive
from experiments.pooling import report
from experiments.pooling.session import Asked, Pools, simulate
from experiments.pooling.sizes import design_names, is_until_ssd, parse_percent, part_names
from experiments.runs.jobs import Settings
from flashsim.core.compiling import cores
from flashsim.core.errors import InvalidParameterError
from flashsim.core.provenance import provenance


class PoolOutcome(Outcome):
    """What systems did.

    Parameters
    ----------
    done
        As it was found.
    """

    SWEPT = ("summary", "series", "traffic")

    def __init__(self, provenance: dict[str, Any], done: Pools) -> None:
        super().__init__(done.title(), provenance)
        self.done = done

    def summary(self) -> pd.DataFrame:
        """A row a design and part that it was without: rates and shares over the last part of the time, and counts over all of it."""
        return pd.DataFrame(self.done.rows())

    def series(self) -> pd.DataFrame:
        """A row a run and interval of virtual time: transactions a second, hit ratios, shares of the SSD, and megabytes a second."""
        return report.series_frame(self.done)

    def kinds(self) -> pd.DataFrame:
        """A row a run and kind of transactions, if there are several: transactions a second and their share, and transactions in all."""
        return pd.DataFrame([row for each in self.done.runs for row in each.kinds()])

    def traffic(self) -> pd.DataFrame:
        """A row a run, device and cause: pages and megabytes a second over the last part of the time, and pages in all."""
        return pd.DataFrame([row for each in self.done.runs for row in each.traffic()])

    def plot_traffic(self) -> Picture:
        """Megabytes a second over time, of the disk and the SSD."""
        return Picture(report.traffic(self.done))

    def plot_parts(self) -> Picture:
        """What designs do without a part of the SSD manager, over what they do with all.

        Raises
        ------
        InvalidParameterError
            None was left out.
        """
        drawn = report.parts(self.done)
        if drawn is None:
            raise InvalidParameterError("without", "nothing", "a part must have been left out")
        return Picture(drawn)

    def _draw(self) -> Figure:
        return report.ramp_up(self.done)


def pool(
    workload: str,
    *,
    memory: str,
    ssd: str = "0B",
    design: Any = "all",
    time: str = "36s",
    disk: Any = "rates",
    ssd_device: Any = "rates",
    precondition: str | None = None,
    log: Any = None,
    log_bytes: str = "200B",
    policy: Any = "lru-k",
    dirty_limit: str | float = "50%",
    filling: str | float = "95%",
    throttle: int = 100,
    group: int = 32,
    partitions: int = 16,
    expansion: int = 8,
    expansion_until: str = "memory",
    read_ahead: int = 32,
    checkpoint: str | None = None,
    fuzzy: bool = False,
    clients: int = 64,
    think: str = "0s",
    page_size: str = "8KiB",
    without: Any = (),
    last: str | float = "20%",
    scale: float = 1.0,
    seed: int = 0,
    trace: str | Path | None = None,
    jobs: int | None = None,
    fresh: bool = False,
) -> PoolOutcome:
    """Run transactions on a memory pool and the SSD that extends it, from cold, in virtual time.

    Parameters
    ----------
    workload
        Such as ``"tpc-c:warehouses=20"``; generated references as ``"zipf:pages=1e5,each=20"``, or the path of a trace.
    memory, ssd
        Sizes of the pools, such as ``"200MB"``.
    design
        One or several of what is done with the SSD, such as ``"lc"``, or paths of Python files; ``"all"`` by default.
    time
        Virtual time that each runs.
    disk, ssd_device, log
        Devices: ``"rates"`` (Do, 2012, table 3.1), with other values as ``"rates:read=1015,write=895,further=26370,servers=8"``; a preset;
        a hundredth of it as ``"iodrive-slc-160gb/100"``; so many drives of it, as ``"8xtoshiba-5400-320gb"``; or an unused `drive`,
        of which each design has its own. Without a log commits take no time.
    precondition
        What the SSD is brought into before each run, if a preset's name is given: ``"steady"`` and the like, as ``--precondition``.
    log_bytes
        Log of each reference that writes.
    policy
        Which page leaves memory.
    dirty_limit, filling
        Shares of the SSD: how much may be newer than the disk (lambda), and how much is filled with whatever leaves memory (tau).
    throttle
        Requests of the SSD outstanding at which others bypass it (mu); 0 for no limit.
    group, partitions, expansion, read_ahead
        Pages that a write of the cleaner holds at most (alpha), parts of the SSD's frames (N), pages that a read from disk brings until
        memory is full, and pages that a scan reads at once.
    expansion_until
        ``"ssd"``: a read brings so many until the SSD is full, too.
    checkpoint, fuzzy
        Time between two checkpoints, None for none; and whether they leave on the SSD what is newer than the disk.
    clients, think
        How many run transactions, and the time between two of a client.
    without
        Parts of the SSD manager without which each design runs once more, to tell what they are worth; ``"all"`` of them, one by one.
    last
        Rates are told over this share of the time, at its end.
    trace
        Of one design: a file to make, with all requests of its devices and what each waited for, such as `fs.replay` takes.
    scale
        Multiplies what the workload grows by, memory, the SSD and times, above 0 and up to 1; rates hardly change, and times are told in
        full.
    jobs
        Designs that run at the same time; one a core by default.
    fresh
        Whether what is kept of earlier runs is left unused.

    Raises
    ------
    InvalidParameterError
        The workload does not fit the disk, an SSD smaller than its partitions need, or a parameter out of its bounds.
    UnknownNameError, MissingFileError
        There is no such design, workload, part or device.

    Examples
    --------
    >>> import flashsim as fs
    >>> told = fs.pool("zipf:pages=2000,each=5", design=["none", "dw"], memory="4MiB", ssd="10MiB", clients=4, time="2s")
    >>> none, dw = told.summary().transactions_s
    >>> bool(dw > none), told.series().shape[0]
    (True, 200)
    """
    switches: Mapping[str, int] = {
        "dirty_limit": parse_percent(dirty_limit, "dirty_limit"),
        "fill": parse_percent(filling, "filling"),
        "throttle": count(throttle, "throttle", 0),
        "group": count(group, "group"),
        "partitions": count(partitions, "partitions"),
        "expansion": count(expansion, "expansion"),
        "expands_for_ssd": is_until_ssd(text(expansion_until, "expansion_until"), "expansion_until"),
        "read_ahead": count(read_ahead, "read_ahead"),
        "checkpoint": 0 if checkpoint is None else duration(checkpoint, "checkpoint"),
        "sharp": not fuzzy,
        "clients": count(clients, "clients"),
        "think": duration(think, "think"),
    }
    given = {"disk": disk, "ssd": ssd_device} | ({} if log is None else {"log": log})
    states = {purpose: (each.precondition, each.seed) for purpose, each in given.items() if isinstance(each, Drive) and each.is_flash}
    if precondition is not None:
        states["ssd"] = text(precondition, "precondition"), seed
    if log is not None:
        switches = {**switches, "log_bytes": size(log_bytes, "log_bytes")}
    parts = [without] if isinstance(without, str) else [text(each, "without") for each in without]
    asked = Asked(
        workload=text(workload, "workload"),
        designs=design_names([text(each, "design") for each in several(design, "design")]),
        memory=size(memory, "memory"),
        ssd=size(ssd, "ssd"),
        time=duration(time, "time"),
        devices={purpose: _device(each, purpose) for purpose, each in given.items()},
        states=states,
        policy=text(policy, "policy"),
        page_size=size(page_size, "page_size"),
        seed=count(seed, "seed", 0),
        scale=number(scale, "scale", "it must be above 0 and at most 1"),
        without=part_names(parts),
        last=parse_percent(last, "last") / 100,
        switches=switches,
    )
    settings = Settings(jobs=cores() if jobs is None else count(jobs, "jobs"), fresh=fresh)
    with working("designs") as progress:
        done = simulate(asked, progress, settings, None if trace is None else Path(text(trace, "trace")))
    return PoolOutcome(provenance(asked.as_dict()), done)


def _device(given: Any, purpose: str) -> str:
    """The name of a preset, as it is or of a drive."""
    return str(given.recipe()["preset"]) if isinstance(given, Drive) else text(given, "ssd_device" if purpose == "ssd" else purpose)


#: One run of a sweep.
point = point_of(pool, jobs=1, fresh=True)

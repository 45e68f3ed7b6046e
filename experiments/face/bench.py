"""``fs.bench``: a device measured with the micro-benchmarks of uFLIP, or with AIOMicrobench."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from experiments.bench.report import picture
from experiments.bench.session import Options, Session
from experiments.bench.session import bench as run
from experiments.bench.uflip import Method
from experiments.face._operation import working
from experiments.face._outcome import Outcome
from experiments.face._units import count as _count
from experiments.face._units import several, text
from experiments.face._units import size as _size
from flashsim.core.provenance import provenance
from flashsim.core.units import MB, MICROSECONDS, format_size


class BenchOutcome(Outcome):
    """What micro-benchmarks showed.

    Parameters
    ----------
    done
        As they ran.
    """

    def __init__(self, title: str, provenance: dict[str, Any], done: Session) -> None:
        super().__init__(title, provenance)
        self.done = done

    def summary(self) -> pd.DataFrame:
        """A row a micro-benchmark, pattern and value of its parameter: response times (us) and MB/s."""
        rows = []
        for one in self.done.runs:
            times = {"min": one.minimum, "mean": one.mean, "p99": one.p99, "max": one.maximum}
            told = {"benchmark": one.benchmark, "pattern": one.pattern, "parameter": one.parameter, "value": one.value}
            rows.append(told | {f"{name}_us": time / MICROSECONDS for name, time in times.items()} | {"mb_per_s": one.bandwidth / MB})
        return pd.DataFrame(rows)

    def figures(self) -> pd.DataFrame:
        """A row a nominal figure of a preset: measured, cited, and by how much they differ; none where only some benchmarks ran."""
        rows = [(one.name, one.measured, one.cited, one.difference) for one in self.done.figures]
        return pd.DataFrame(rows, columns=["figure", "measured", "cited", "difference"])

    def _draw(self) -> Figure:
        first = self.done.runs[0].benchmark
        return picture([one for one in self.done.runs if one.benchmark == first], self.done.set)


def bench(
    device: str,
    only: Any = (),
    *,
    set: str = "uflip",
    sizes: Any = (),
    levels: Any = (),
    quick: bool = False,
    size: str | None = None,
    count: int | None = None,
    state: str | None = None,
    allow_write: bool = False,
    force: bool = False,
    seed: int = 0,
) -> BenchOutcome:
    """Measure a device with the nine micro-benchmarks of uFLIP (CIDR 2009), or some of them, or with AIOMicrobench (SAC 2016).

    Parameters
    ----------
    device
        A preset, or the path of a real file or block device, which is only read unless writing is allowed.
    only
        One micro-benchmark or several, such as ``"granularity"``; all by default. The first is drawn.
    set
        ``"uflip"``, or ``"aio"``: bandwidth over I/O size and outstanding level, of ``"read"`` and ``"write"``, in sets of requests handed
        over at once.
    sizes, levels
        Of the set ``"aio"``: sizes such as ``"4KiB"``, and how many requests a set has; by default 4 KiB to 1 MiB, and 1 to 64.
    quick
        Fewer values, shorter runs, and 1 GiB of a simulated drive.
    size, count
        How much of the device is used, and the requests of a run.
    state
        Of a simulated drive, as for `fs.drive`, such as ``"steady"``; by default a tenth of it was written at random.
    allow_write, force
        Whether a real device may be written to, which destroys what it holds, and a file that exists overwritten.
    seed
        Of random places.

    Raises
    ------
    UnknownNameError, RefusedError, CapacityError, InvalidParameterError
        There is no such device or benchmark, it may not be written, or is too small.

    Examples
    --------
    >>> import flashsim as fs
    >>> told = fs.bench("toshiba-5400-320gb", "granularity", quick=True, count=16)
    >>> told.summary()["pattern"].unique().tolist()
    ['SR', 'RR', 'RW', 'SW']
    """
    name = text(device, "device")
    told: dict[str, Any] = {
        "set": text(set, "set"),
        "sizes": [] if sizes == () else [_size(each, "sizes") for each in several(sizes, "sizes")],
        "levels": [] if levels == () else [_count(each, "levels") for each in several(levels, "levels")],
    }
    asked = [] if only == () else [text(each, "only") for each in several(only, "only")]
    used = None if size is None else _size(size, "size")
    options = Options(asked, used, None if count is None else _count(count, "count"), quick, allow_write, force, state, **told)
    with working("measuring") as progress:
        done = run(name, options, Method(seed=_count(seed, "seed", 0)), progress)
    title = f"{done.device}: {len(done.runs)} runs over {format_size(done.size)}; {done.state}"
    return BenchOutcome(title, provenance({"device": name, **vars(options)}, seed), done)

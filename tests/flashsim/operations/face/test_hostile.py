"""What cannot be right is refused in one line that names the argument; what can be understood just works."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import flashsim as fs
from flashsim.core.errors import FlashsimError

R = pd.DataFrame({"k": [1, 2, 3], "a": ["x", "y", "z"]})
S = pd.DataFrame({"k": [3, 1, 3], "b": [1.0, 2.0, 3.0]})
ONE_READ = {"operation": ["read"], "offset": [0], "length": [4096]}


def join(r: Any = R, s: Any = S, **more: Any) -> Any:
    return fs.join(r, s, **{"on": "k", "device": "ocz-core-60gb", "memory": "64KiB"} | more)


def frame(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame(columns)


@pytest.mark.parametrize(
    "call, told",
    [
        (lambda: join(memory=64), "memory: 64, but a size with a unit is needed, such as '64MiB'"),
        (lambda: join(memory="64"), "memory: '64', but a number with a unit"),
        (lambda: join(page_size=8192), "page_size: 8192, but a size with a unit"),
        (lambda: join(page_format="pox"), "page format: 'pox' is unknown; did you mean pax"),
        (lambda: join(page_format=["pax"]), r"page_format: \['pax'\], but a name"),
        (lambda: join(frame(k=["x" * 9000]), frame(k=["x"]), page_format="pax"), "a row of relation r takes 9004 B of the 8184 B"),
        (lambda: join(on=["k", "a"]), r"on: \['k', 'a'\], but one column is needed"),
        (lambda: join(on="kk"), "column of r: 'kk' is unknown; did you mean k"),
        (lambda: join(device="ocz-core"), "did you mean ocz-core-60gb"),
        (lambda: join(device=[]), r"device: \[\], but at least one"),
        (lambda: fs.drive("x" * 9999), r"x\.\.\.x+ \(9,999 characters\): its name is too long for a file$"),
        (lambda: fs.trace("x" * 9999), r"x\.\.\.x+ \(9,999 characters\): its name is too long for a file$"),
        (lambda: fs.papers(None), "papers: 1 by position, but it takes none; give others by name: NAME=VALUE"),  # type: ignore[call-arg]
        (lambda: join(page_size="8192.4B"), "page_size: '8192.4B', but a size is a whole number of bytes"),
        (lambda: join(device=3), "device: 3, but a preset's name, an fs.drive or a path"),
        (lambda: join(algorithm="hybrid"), "did you mean hybrid-hash"),
        (lambda: join(io=["page"]), "io: .*blocked, page"),
        (lambda: join(trace=5), "trace: 5, but a name or a path"),
        (lambda: join(cpu=3), "cpu: 3, but a name"),
        (lambda: join(force="no"), "force: 'no', but it must be True or False"),
        (lambda: join(allow_write=R), "allow_write: DataFrame, but it must be True or False"),
        (lambda: fs.replay(ONE_READ, {}), r"device: \{\}, but a path for each device of the trace"),
        (lambda: join(buffers_for=3), "buffers_for: 3, but a name"),
        (lambda: join(frame(k=[2**70])), "r: the table cannot be taken: .*too (big|large)"),
        (lambda: join({"k": [2**70]}), "r: the table cannot be taken: .*too (big|large)"),
        (lambda: join([1, 2]), "r: an object of type list, but a table is needed"),
        (lambda: join(pd.Series([1], name="k")), "r: an object of type Series"),
        (lambda: join(pd.DataFrame([[1, 2]])), "r: a column is named 0, but names are texts"),
        (lambda: join(pd.DataFrame([[1, 2]], columns=["k", "k"])), "r: two columns are named k"),
        (lambda: join(pd.DataFrame()), "it has no columns"),
        (lambda: join(frame(k=[1, 2], o=[1, "a"])), "r: the table cannot be taken: Could not convert 'a'.*column o"),
        (lambda: join(frame(k=list("abc"))), "r.k is large_string, but s.k is int64"),
        (lambda: join("customers"), "source: 'customers' is unknown"),
        (lambda: join(device="./disk.bin"), "allow it with allow_write=True"),
        (lambda: join(device=["./disk.bin", "ocz-core-60gb"]), "which runs alone; fs.compare"),
        (lambda: join().plot("x.gif"), "a picture's name must end in .svg"),
        (lambda: fs.drive("intel-x25e-64gb", "stedy"), "state: 'stedy' is unknown; did you mean steady"),
        (lambda: fs.drive("./disk.bin"), "is a real file; fs.join, fs.replay and fs.compare"),
        (lambda: fs.drive("toshiba-5400-320gb", "steady,erases=5"), "state: .* is a disk"),
        (lambda: fs.drive("toshiba-5400-320gb").write(), "one of them says how much"),
        (lambda: fs.drive("toshiba-5400-320gb").write(random=5), "random: 5, but a size with a unit"),
        (lambda: fs.drive("toshiba-5400-320gb").write(random="1MiB", request="1000B"), "request: .*multiple of 512 B"),
        (lambda: fs.drive("toshiba-5400-320gb").read(random="1MiB", within="10TB"), "within: 10 TB, but toshiba-5400-320gb holds"),
        (lambda: fs.drive("toshiba-5400-320gb").read(random="1MiB", depth=0), "depth: 0, but it must be at least 1"),
        (
            lambda: fs.drive("toshiba-5400-320gb").write(sequential="100TiB"),
            "sequential: 26,843,545,600 requests .* take 600 GiB of memory",
        ),
        (lambda: fs.drive("toshiba-5400-320gb").read(random="100TiB"), "random: 26,843,545,600 requests .* take 600 GiB of memory"),
        (lambda: fs.replay(frame(offset=[0], length=[4096]), "ocz-core-60gb"), "the frame has no column operation"),
        (lambda: fs.replay(frame(**ONE_READ | {"operation": ["rd"]}), "ocz-core-60gb"), "'rd' is unknown; did you mean read"),
        (lambda: fs.replay(frame(**ONE_READ | {"offset": [-1]}), "ocz-core-60gb"), "offset: .*not a whole number of at least 0"),
        (lambda: fs.replay(frame(**ONE_READ | {"offset": [10**15]}), "ocz-core-60gb"), "add wrap=True"),
        (lambda: fs.replay(frame(**ONE_READ), "./disk.bin"), "device: .*disk.bin"),
        (lambda: fs.replay(frame(**ONE_READ | {"offset": [2**70]}), "ocz-core-60gb"), "trace: the table cannot be taken"),
        (lambda: fs.replay(frame(**ONE_READ | {"offset": [2**63]}), "ocz-core-60gb"), "offset: 9223372036854775808 is not a whole number"),
        (lambda: fs.replay(frame(**ONE_READ, device=2**15), "ocz-core-60gb"), "device: 32768 is not a whole number .* below 32768"),
        (lambda: fs.replay(frame(**ONE_READ, dependency=-2), "ocz-core-60gb"), "dependency: -2 is not a whole number of at least -1"),
        (lambda: fs.replay(None, "ocz-core-60gb"), "trace: None, but a trace is needed"),
        (lambda: fs.sweep(fs.devices, preset=["x"]), "a sweep is of fs.join, fs.pool or fs.replay"),
        (lambda: fs.sweep(fs.join, r=R, s=S, on="k", device="ocz-core-60gb", memory="64KiB"), "none is a list"),
        (lambda: fs.sweep(fs.join, algoritm=["bnl"]), "'algoritm' is unknown; did you mean algorithm"),
        (lambda: fs.sweep(fs.join, r=R, s=S, on="k", device="ocz-core-60gb", algorithm=["bnl"]), "memory: not given"),
        (lambda: fs.compare(R, S, "k", path="intel-x25e-64gb", device="intel-x25e-64gb", memory="64KiB"), "is a preset, but a real file"),
        (lambda: fs.reproduce("do2009", scale="0.1"), "scale: '0.1', but a number"),  # type: ignore[arg-type]
        (lambda: fs.reproduce(), "target: not given, but a paper is needed, of do2009"),
        (lambda: fs.trace("nothing.trace"), "no file at nothing.trace"),
        (lambda: fs.trace(frame(**ONE_READ), speed="2"), "speed: '2', but a number"),  # type: ignore[arg-type]
        (lambda: fs.trace(frame(**ONE_READ), device_number="2"), "device_number: '2', but a whole number"),  # type: ignore[arg-type]
        (lambda: fs.trace(frame(**ONE_READ), start=1), "start: 1, but a time with a unit"),  # type: ignore[arg-type]
        (lambda: fs.trace(frame(**ONE_READ), window=1), "window: 1, but a time with a unit"),  # type: ignore[arg-type]
        (lambda: fs.trace(frame(**ONE_READ), format=1), "format: 1, but a name"),  # type: ignore[arg-type]
        (lambda: fs.devices(5), "preset: 5, but a name"),  # type: ignore[arg-type]
        (lambda: join(devcie=3), "argument: 'devcie' is unknown; did you mean device"),
        (lambda: fs.join(R, S, on="k", device="ocz-core-60gb"), "memory: not given, but it is required"),
        (lambda: fs.trace(R, R, R), "trace: 3 by position, but it takes trace; give others by name: NAME=VALUE"),  # type: ignore[call-arg,arg-type]
        (lambda: fs.drive("intel-x25e-64gb", stat="new"), "argument: 'stat' is unknown; did you mean state"),  # type: ignore[call-arg]
        (lambda: fs.drive("toshiba-5400-320gb").write(randon="1MiB"), "argument: 'randon' is unknown; did you mean random"),  # type: ignore
        (lambda: fs.drive("intel-x25e-64gb", np.arange(3)), r"state: array\(\[0, 1, 2\]\), but a name"),  # type: ignore[arg-type]
        (lambda: join(device={}), "preset: not given, but it is required"),
        (lambda: join(cpu=np.arange(3)), "cpu: an object of type ndarray, but values of this type are not accepted"),
        (lambda: join(io=np.arange(3)), "io: an object of type ndarray, but values of this type are not accepted"),
        (lambda: join(memory="9" * 9000), r"memory: '9+\.\.\.9+' \(9,002 characters\), but"),
        (lambda: join(memory="1\x1b[31m\nMiB"), r"memory: '1\\x1b\[31m\\nMiB', but"),
        (lambda: join(buffers_for="a\x1b[31m\nb"), "'a .31m b' is unknown"),
        (lambda: fs.tiny_drive(None), "pages: None, but a whole number"),  # type: ignore[arg-type]
        (lambda: fs.bench("ocz-core-60gb", state=b"x"), "state: b'x', but a share is needed"),  # type: ignore[arg-type]
        (lambda: fs.algorithms(set()), r"family: set\(\), but a name"),  # type: ignore[arg-type]
        (lambda: fs.sweep(fs.join, 1, 2), "sweep: 3 by position, but it takes function; give others by name"),  # type: ignore
        (lambda: fs.sweep(), "function: not given, but it is required"),  # type: ignore[call-arg]
        (lambda: fs.drive("toshiba-5400-320gb").read(0, 4096), "Drive.read: 2 by position, but it takes none"),  # type: ignore
        (lambda: fs.drive("toshiba-5400-320gb").zones(1, 2), "Drive.zones: 2 by position, but it takes none"),  # type: ignore
        (lambda: fs.drive("toshiba-5400-320gb").append(1, "4KiB", 3), "Drive.append: 3 by position, but it takes zone, length"),  # type: ignore
        (lambda: fs.drive("toshiba-5400-320gb").append(), "zone: not given, but it is required"),  # type: ignore[call-arg]
        (lambda: fs.drive("toshiba-5400-320gb").idle(tme="1s"), "argument: 'tme' is unknown; did you mean time"),  # type: ignore
        (lambda: fs.tiny_drive().write(1, 2, 3, 4), "LabDrive.write: 4 by position, but it takes page"),  # type: ignore[call-arg]
        (lambda: fs.tiny_drive(1, 2), "tiny_drive: 2 by position, but it takes pages"),  # type: ignore[call-arg]
        (lambda: fs.device_new(base="micron-p300", out="new.toml"), "base: not an argument, but it is preset now"),
        (lambda: fs.identify(files="figures.csv"), "files: not an argument, but it is figures now"),
        (lambda: fs.identify("x" * 5000), r"figures: .*x{9}\.\.\.x{9}.*characters"),
        (lambda: fs.algorithms(famly="joins"), "argument: 'famly' is unknown; did you mean family"),  # type: ignore[call-arg]
    ],
)
def test_refused_in_one_line(call: Callable[[], object], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FlashsimError, match=told) as refused:
        call()
    assert "\n" not in str(refused.value) and "--" not in str(refused.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "r, s, rows",
    [
        (R.iloc[:0], S, 0),
        (frame(k=[1, None, np.nan]), frame(k=[None, 1.0]), 1),  # NULL joins nothing
        (frame(k=[None, None]), S, 0),
        (frame(k=list("abc")), frame(k=list("cba")), 3),
        (frame(k=pd.Categorical([1, 2])), S, 1),
        (R.set_index("k"), S, 3),
        (R.rename_axis("k"), S, 3),
        (pa.table({"k": [1, 2]}), pa.record_batch({"k": [2]}), 1),
        ({"k": [1, 2]}, {"k": [2]}, 1),
    ],
)
def test_tables_of_any_kind(r: Any, s: Any, rows: int) -> None:
    for on in ("k", "k=k", ["k"]):
        assert len(join(r, s, on=on).rows()) == rows


def test_a_column_whose_name_holds_the_sign() -> None:
    assert len(join(R.rename(columns={"k": "a=b"}), S.rename(columns={"k": "a=b"}), on="a=b").rows()) == 3

"""What every command prints at 80, 120 and 200 columns is kept, as reviewed; nothing is wider than the terminal, and no number is parted.

After a change that is meant, ``pytest -m "" tests/flashsim/operations/test_terminal.py --renew`` writes them anew; review the difference.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from flashsim.experiments.presentation import terminal
from flashsim.experiments.presentation.tables import Entry, Table
from flashsim.experiments.replaying import real
from flashsim.operations.face import doctor
from tests.commands import SMALL_JOIN, Run
from tests.contract.test_replacement import PLAIN
from tests.flashsim.hdd.diskspecs.drive_files import write_drive
from tests.flashsim.operations.test_examples import COMMANDS, FIGURES, IDENTIFY, write_submissions

SNAPSHOTS = Path(__file__).with_name("terminal")
WIDTHS = (80, 120, 200)
#: A line of each command, and whether its numbers are of this machine, so that only words and shape are kept.
LINES = {
    "reproduce": ("reproduce", False),
    "reproduce a claim": ("reproduce do2009/slides-erase --scale 0.01 --details", False),
    "join": (SMALL_JOIN, False),
    "fetch": ("fetch bipartite:pages=5,density=0.5 --frames 3 --exact", False),
    "check": ("check mine.py", False),
    "crash": ("crash --check cat<a||true --folder . -- touch a", True),
    "settings": ("settings toshiba-5400-320gb", False),
    "stores": ("stores dbm.dumb --outcomes 1", True),
    "advise": (
        "advise small.trace --device micron-p300,toshiba-5400-320gb --state empty --bound p99=20ms --repeats 2 --limit 100 --jobs 1",
        False,
    ),
    "fleet": ("fleet small.trace --device micron-p300 --drives 3 --limit 100 --state empty --jobs 1", False),
    "fleet of disks": ("fleet small.trace --device toshiba-5400-320gb --drives 3 --limit 100 --jobs 1", False),
    "record": ("record --out run.parquet -- true", True),
    "export": ("export tpch:customer@0.001 --out exported", False),
    "device list": ("device list", False),
    "device show": ("device show seagate-st3300655lc", False),
    "device bench": ("device bench ocz-core-60gb --quick --only order --count 64", False),
    "device serve": ("device serve ocz-core-60gb --socket drive.sock --time-scale 0 --run true", True),
    "device calibrate": ("device calibrate --cpu --time 100ms --out cpu.toml", True),
    "device new": ("device new --preset micron-p300 --out mine.toml --capacity 60GB --read-mbps 300 --read-iops 40000 --tbw 500", False),
    "device identify": (IDENTIFY, False),
    "device import-diskspecs": ("device import-diskspecs drive.parv --out drive.toml", False),
    "trace list": ("trace list", False),
    "trace info": ("trace info small.trace", False),
    "trace convert": ("trace convert small.trace small.parquet --to parquet", False),
    "trace replay": ("trace replay small.trace --device micron-p300", False),
    "trace replay on a file": ("trace replay small.trace --device ./disk.bin --writes-as-reads --against ocz-core-60gb", True),
    "cache list": ("cache list lru lru-k", False),
    "cache simulate": ("cache simulate pages.txt --policy lru --policy opt --size 5%..50%", False),
    "cache curve": ("cache curve pages.txt --policy lru --policy arc --size 10%..60%", False),
    "cache keep": ("cache keep zipf:pages=1000,references=5000 --out kept.parquet", False),
    "cache compare": ("cache compare pages.txt fifo lru --size 10%,30%", False),
    "pool list": ("pool list", False),
    "pool run": (
        "pool run zipf:pages=2000,write-share=0.3 --design none,dw --memory 4MiB --ssd 8MiB --clients 4 --time 1s --without throttle",
        False,
    ),
    "pool restart": ("pool restart tpc-c:warehouses=1 --memory 20MB --ssd 64MB --time 10s --checkpoint 2s", False),
    "pool crash": ("pool crash --restart mmr --seed 4 --event 200", False),
    "smart run": (
        'smart run "SELECT n_regionkey, count(*) FROM n GROUP BY 1" --table n=tpch:nation@0.01 --device samsung-smart-400gb --where drive',
        False,
    ),
    "lab list": ("lab list", False),
    "lab start": ("lab start replacement", False),
    "lab check": ("lab check disk-scheduling_cy.py --instances 1", False),
    "lab grade": ("lab grade replacement_ada.ipynb --seed 0x9e3779b97f4a7c15f39cc0605cedc834 --instances 2", False),
    "lab leaderboard": (
        "lab leaderboard replacement_ada.ipynb replacement_bo.ipynb --seed 0x9e3779b97f4a7c15f39cc0605cedc834 --instances 2",
        False,
    ),
    "validate hdd": ("validate hdd --drive toshiba-5400-320gb --trace measured.trace", False),
    "validate joins": (
        "validate joins --path ./joins.bin --device ocz-core-60gb --scale 0.005 --memory 256KiB --engine builtin --allow-write --repeats 1",
        True,
    ),
    "validate ssd": ("validate ssd --claim amplification --scale 0.02 --jobs 1", False),
    "doctor": ("doctor", False),
}

#: What stands for this machine.
EXAMINED = {
    "system": {
        "flashsim": "1.0.0",
        "python": "3.13.1",
        "machine": "Linux x86_64",
        "cores": 2,
        "memory": 3_000_000_000,
        "real devices": "by threads",
    },
    "libraries": {"numpy": "2.3.5", "numba": "0.68.0"},
    "engines": {"flash drive": {"compiled": 12, "of": 34}, "disk": {"compiled": 21, "of": 21}},
    "cache": {"folder": "HERE/kernels", "bytes": 23456789, "files": 123, "oldest": "2026-01-02", "newest": "2026-03-04", "writable": True},
    "others": {
        "fio": {"found": True, "version": "fio-3.33", "for": doctor._PROGRAMS["fio"]},
        "flashsim[labs]": {"found": False, "version": None, "for": doctor._EXTRAS["labs"][1]},
    },
}


def numbers(text: str) -> Counter[str]:
    return Counter(re.findall(r"\d[\d,.]*\d|\d", text))


#: Numbers, with the unit of a time; digits of a name are none.
_NUMBER = re.compile(r"(?<![\w./-])[-+]?\d[\d,.]*\d(?: [num]?s\b)?|(?<![\w./-])[-+]?\d(?: [num]?s\b)?")
#: Heads of columns that hold times of this machine.
OF_THIS_MACHINE = ("planning time (s)", "CPU (µs)")
_SECONDS = re.compile(r"\d+ runs? in \d+ s: \d+ simulated now, \d+ kept")


def masked(part: terminal.Part, *, measured: bool) -> terminal.Part:
    """A part without the seconds that passed here, and where it is measured here, with 1 for every number: so it takes the same room."""

    def text(words: str) -> str:
        return _NUMBER.sub("1", words) if measured else _SECONDS.sub("1 run in 1 s: 1 simulated now, 1 kept", words)

    def entry(value: Entry) -> Entry:
        return text(value) if isinstance(value, str) else 1 if isinstance(value, int) else 1.0 if isinstance(value, float) else None

    if isinstance(part, str):
        return text(part)
    if isinstance(part, terminal.Explanation):
        return replace(part, text=text(part.text))
    hidden = [measured or head in OF_THIS_MACHINE for head in part.columns]
    rows = [[entry(value) if hide else value for hide, value in zip(hidden, row, strict=True)] for row in part.itertuples(index=False)]
    return Table(list(part.columns), rows, **{str(name): value for name, value in part.attrs.items()})


@pytest.fixture
def files(here: Path) -> Path:
    """What the lines work on."""
    (here / "measured.trace").write_text("R Miss 564347 2 14095.270 13876.270\nW Hit 564349 4 1414.000 18746.770\n", encoding="utf-8")
    rows = [f"{12345 * number},{'RW'[number % 2]},{(number * 7919) % 5000 * 4096},{4096 << number % 3}" for number in range(200)]
    (here / "small.trace").write_text("".join(f"419,{op},{at},{size},{us}\n" for us, op, at, size in (row.split(",") for row in rows)))
    (here / "disk.bin").write_bytes(bytes(32 << 20))
    (here / "pages.txt").write_text("\n".join(f"{number**3 % 97}" for number in range(3000)))
    (here / "figures.csv").write_text(FIGURES)
    write_submissions()
    (here / "mine.py").write_text(PLAIN)
    write_drive(here)
    return here


def test_every_command_has_a_snapshot() -> None:
    groups = ("", "device", "trace", "cache", "pool", "smart", "lab", "validate")
    assert set(COMMANDS) - set(groups) <= set(LINES) and {path.stem for path in SNAPSHOTS.iterdir()} == set(LINES)


@pytest.mark.parametrize("name", LINES)
def test_what_is_printed_fits_and_is_as_reviewed(
    name: str, files: Path, flashsim: Run, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    line, measured = LINES[name]
    parts: list[terminal.Part] = []
    fitted = terminal.fit_to_width
    monkeypatch.setattr(terminal, "fit_to_width", lambda part, columns: parts.append(part) or fitted(part, columns))
    monkeypatch.setattr(doctor, "_facts", lambda: EXAMINED)
    monkeypatch.setattr(real, "LATE", -1)  # every request on a file is late, on a fast machine too
    result = flashsim(line.replace("drive.parv", next(path.name for path in files.glob("*.parv"))))
    assert result.exit_code == 0, result.output
    parts = [part.replace(str(files), "HERE") if isinstance(part, str) else part for part in parts]
    whole, shown = "\n".join(fitted(part, None) for part in parts), {}
    for columns in WIDTHS:
        text = "\n".join(fitted(part, columns) for part in parts)
        assert max(map(len, text.splitlines())) <= columns
        assert not numbers(whole) - numbers(text), "a number is missing or in two parts"
        hidden = (masked(part, measured=measured) for part in parts)
        shown[columns] = "\n".join(fitted(terminal.in_singular(part), columns) for part in hidden)
    found = f"$ flashsim {line}\n"
    for text in dict.fromkeys(shown.values()):
        found += f"\n# {' and '.join(str(columns) for columns in WIDTHS if shown[columns] == text)} columns\n{text}\n"
    snapshot = SNAPSHOTS / f"{name}.txt"
    if request.config.getoption("--renew"):
        snapshot.write_text(found, encoding="utf-8")
    assert found == snapshot.read_text(encoding="utf-8"), "if it is meant: pytest -m '' tests/flashsim/operations/test_terminal.py --renew"

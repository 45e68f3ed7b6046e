"""Block events against the program blkparse: what it prints of drawn captures, with summaries, of letters, and of each action alone."""

from __future__ import annotations

import re
import shutil
import subprocess
import warnings
from collections import defaultdict
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flashsim.core.errors import DamagedFileError, FlashsimWarning
from flashsim.core.request import FLUSH, FORCE_UNIT_ACCESS, READ, TRIM, WRITE
from tests.tiers import seeds
from tests.traces.test_blktrace import LITTLE, table
from traces.format import recognise

needs_blkparse = pytest.mark.skipif(not shutil.which("blkparse"), reason="blkparse is not installed")
#: A request as (device, operation, offset, length, flags, arrival, started, completed).
Request = tuple[str, int, int, int, int, int, int | None, int | None]
_COLUMNS = ("label", "operation", "offset", "length", "flags", "arrival", "started", "completed")
#: Bits of an action's category (blktrace_api.h): those of operations that are drawn, and of the stages of a request.
_READ, _WRITE, _FLUSH, _SYNC, _AHEAD, _META, _DISCARD, _FUA = (1 << bit for bit in (0, 1, 2, 3, 11, 12, 13, 15))
_KINDS = (_READ, _WRITE, _WRITE | _DISCARD, _WRITE | _FLUSH, _WRITE | _FLUSH | _FUA, _WRITE | _FUA, _READ | _FLUSH)
_STAGES = {
    "Q": (1, 1 << 4),
    "G": (4, 0),
    "I": (12, 0),
    "M": (2, 1 << 4),
    "D": (7, 1 << 6),
    "R": (6, 1 << 5),
    "C": (8, 1 << 7),
    "UT": (11, 0),
}


def drawn_capture(rng: np.random.Generator) -> list[np.ndarray[Any, Any]]:
    """The records of each processor: on up to three devices, of which each has all stages of requests or some."""
    events = list[tuple[int, int, int, int, str]]()
    for device in rng.choice([8 << 20, 8 << 20 | 16, 259 << 20], rng.integers(1, 4), replace=False).tolist():
        stages = [*rng.choice(["QGIDC", "QDC", "QC", "D", "Q", "C", "DC"])]
        for _ in range(rng.integers(1, 25)):
            kind = int(
                rng.choice([_READ, _WRITE, _WRITE | _DISCARD, _WRITE | _FLUSH, _WRITE | _FLUSH | _FUA, _WRITE | _FUA, _READ | _FLUSH])
            )
            kind |= int(rng.choice([0, _SYNC, _AHEAD, _META, _SYNC | _META]))
            empty = kind & _FLUSH and rng.random() < 0.6
            sector, size = (0, 0) if empty else (int(rng.integers(1, 40)) * 8, int(rng.integers(1, 4)) * 4096)
            begin = int(rng.integers(0, 10**6))
            chosen = [stage for stage in stages if stage == stages[0] or rng.random() < 0.9]
            if "D" in chosen and rng.random() < 0.15:  # given back, and issued again
                chosen[chosen.index("D") :] = [*"DRD", *chosen[chosen.index("D") + 1 :]]
            events += [(begin + 1000 * step + device % 97, device, kind, sector << 32 | size, stage) for step, stage in enumerate(chosen)]
        if rng.random() < 0.3:
            events.append((int(rng.integers(0, 10**6)), device, _READ, 0, "UT"))
    times = {time: number for number, time in enumerate(sorted(rng.choice(10**7, len(events), replace=False).tolist()))}
    files: list[list[tuple[int, ...]]] = [[], [], []]
    for (_, device, kind, extent, stage), time in zip(sorted(events), times, strict=True):
        action, category = _STAGES[stage]
        processor, payload = int(rng.integers(0, 3)), 8 if stage == "UT" else 0
        numbers = (0x65617407, len(files[processor]) + 1, time + 5, extent >> 32, extent & 0xFFFFFFFF, (kind | category) << 16 | action)
        files[processor].append((*numbers, 7, device, processor, 0, payload))
    return [np.array(rows, LITTLE) for rows in files]


def written(capture: list[np.ndarray[Any, Any]], folder: Path) -> Path:
    """The capture as a file for each processor, those of idle ones empty; the name of the first."""
    for processor, rows in enumerate(capture):
        parts = [row.tobytes() + (7).to_bytes(8, "big") * int(row["pdu_len"] > 0) for row in rows]
        (folder / f"sda.blktrace.{processor}").write_bytes(b"".join(parts))
    return folder / "sda.blktrace.0"


def blkparse(folder: Path, *options: str) -> str:
    return subprocess.run(["blkparse", "-i", "sda", *options], cwd=folder, capture_output=True, text=True, check=True).stdout


def expected(folder: Path) -> list[Request]:
    """The requests of a capture by the events that blkparse names, in plain Python."""
    printed = blkparse(folder, "-q", "-f", "%M,%m %T %t %a %d %S %N\n")
    events = [
        (label, int(s) * 10**9 + int(ns), *rest) for label, s, ns, *rest in map(str.split, printed.splitlines()) if label[0].isdigit()
    ]
    actions = defaultdict[str, set[str]](set)
    for label, _, action, *_ in events:
        actions[label].add(action)
    makers = {label: next((action for action in "DQC" if action in those), "") for label, those in actions.items()}
    queued, opened = defaultdict[Any, list[int]](list), defaultdict[Any, list[int]](list)
    requests: list[Any] = []
    flushes: dict[int, int] = {}
    for label, time, action, letters, sector, size in events:
        before, _, after = letters.partition(next(letter for letter in letters if letter in "RWDN"))
        kind = FLUSH if int(size) == 0 else {"R": READ, "W": WRITE, "D": TRIM}[letters[len(before)]]
        place = (label, 0, 0) if kind == FLUSH else (label, int(sector) * 512, int(size))
        if action == makers[label]:
            flags = FORCE_UNIT_ACCESS if "F" in after and kind != FLUSH else 0  # a flush forces nothing more
            started = time if action == "D" else None
            if before == "F" and kind != FLUSH:
                requests.append((label, FLUSH, 0, 0, 0, time, started, None))
                flushes[len(requests)] = len(requests) - 1
            arrival = queued[place].pop(0) if action == "D" and queued[place] else time
            requests.append((label, kind, *place[1:], flags, arrival, started, None))
            opened[place].append(len(requests) - 1)
        elif action == "Q":
            queued[place].append(time)
        elif action == "C" and opened[place]:
            number = opened[place].pop(0)
            requests[number] = (*requests[number][:-1], time)
        elif action == "R" and makers[label] == "D" and any(requests[each][1] == kind for each in opened[place]):
            number = max(each for each in opened[place] if requests[each][1] == kind)
            opened[place].remove(number)
            queued[place].append(requests[number][5])
            for each in (number, flushes.pop(number, number)):
                requests[each] = None
    return [request for request in requests if request]


def requests_of(path: Path, begin: int = 0) -> list[Request]:
    """The requests that are read of a file, with times from `begin` on; that a device has completions alone is no news."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FlashsimWarning)
        found = table(path)
    columns = {name: found.column(name).to_pylist() for name in _COLUMNS}
    for name in ("arrival", "started", "completed"):
        columns[name] = [None if time is None else time - begin for time in columns[name]]
    return list(zip(*columns.values(), strict=True))


@needs_blkparse
@pytest.mark.parametrize("seed", seeds(0, 10, deep=290))
def test_drawn_captures_are_the_requests_of_what_blkparse_prints(seed: int, tmp_path: Path) -> None:
    """From the binary files of processors, and from its text with summaries of processors and programs, alone and after another text."""
    capture = drawn_capture(np.random.default_rng(seed))
    first = written(capture, tmp_path)
    wanted = expected(tmp_path)
    assert requests_of(first, min(int(rows["time"].min()) for rows in capture if len(rows))) == wanted
    text = blkparse(tmp_path, "-s")
    (tmp_path / "text").write_text(text)
    assert requests_of(tmp_path / "text") == wanted
    later = re.sub(r"(?m)^( *\d+),(\d+)( .*) (\d)(\.\d{9}) ", r"\1,9\2\3 9\5 ", text)
    (tmp_path / "both").write_text(text + later)
    assert requests_of(tmp_path / "both")[: len(wanted)] == wanted and len(requests_of(tmp_path / "both")) == 2 * len(wanted)


def line(action: str, letters: str, place: str = "64 + 8 ", time: int = 0, device: str = "8,0") -> str:
    return f"  {device}    0        1     0.{time:09d}   697 {action:>2} {letters:>3} {place}[x]\n"


@pytest.mark.parametrize(
    ("letters", "operations"),
    {
        "R": [READ], "RA": [READ], "RSM": [READ], "W": [WRITE], "WS": [WRITE], "WFSM": [WRITE], "WSU": [WRITE], "FWFS": [FLUSH, WRITE],
        "WBS": [FLUSH, WRITE], "D": [TRIM], "DS": [TRIM], "DES": [TRIM], "ZA": [WRITE], "ZAS": [WRITE], "FN": [FLUSH], "FF": [FLUSH],
        "FWS": [FLUSH, WRITE], "ZR": [], "ZRA": [], "ZF": [], "ZO": [], "ZCS": [], "N": [], "NS": [],
    }.items(),
)  # fmt: skip
def test_letters_say_what_a_request_does(letters: str, operations: list[int], tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text(line("D", "R", "8 + 8 ") + line("D", letters, "" if operations == [FLUSH] else "64 + 8 ", time=1))
    with nullcontext() if operations else pytest.warns(FlashsimWarning, match="1 events are neither read, write, discard nor flush"):
        found = table(path).to_pydict()
    assert found["operation"] == [READ, *operations]
    assert bool(found["flags"][-1]) == ("WF" in letters or "B" in letters)


@pytest.mark.parametrize("letters", ["X", "RX", "WZ", "ZX", "Z", "WD", "FWQ"])
def test_letters_that_are_not_known_are_refused_by_line(letters: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(line("D", "R") + line("D", letters))
    with pytest.raises(DamagedFileError, match=f"a, line 2: its operation has letters that are not known: {letters}$"):
        table(tmp_path / "a", "blkparse")


def test_an_action_that_is_not_known_is_refused_by_line(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(line("Q", "R") + line("Z", "R"))
    with pytest.raises(DamagedFileError, match="a, line 2: its action is not known: Z$"):
        table(tmp_path / "a", "blkparse")


def test_actions_of_two_letters_and_texts_between_events_are_no_requests(tmp_path: Path) -> None:
    counts = " Reads Queued:           1,        4KiB\t Writes Queued:           0,        0KiB\n"
    recorder = "=== sda ===\n  CPU  0:                  111 events,        6 KiB data\n  Total:   111 events (dropped 0),  6 KiB data\n"
    between = f"CPU0 (sda):\n{counts}fio (697)\n\nSkips: 0 forward\n{recorder}"
    events = line("Q", "R"), line("UT", "N", "", 1), line("D", "R", time=2), line("FM", "W", time=3)
    (tmp_path / "a").write_text(between + between.join(events) + between)
    found = table(tmp_path / "a")
    assert recognise(tmp_path / "a") == "blkparse" and (found.num_rows, found.column("arrival").to_pylist()) == (1, [0])
    (tmp_path / "a").write_text(line("Q", "R") + between + "what is this?\n" + line("Q", "R"))
    with pytest.raises(DamagedFileError, match="a, line 10: it is not an event"):
        table(tmp_path / "a")


def test_completions_alone_are_requests_that_arrive_then(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(line("C", "R", "8 + 8 ", 5) + line("C", "FN", "0 ", 7) + line("C", "WS", "8 + 8 ", 9))
    with pytest.warns(FlashsimWarning, match="a: completions alone of a device: a request arrives when it completes"):
        found = table(tmp_path / "a").to_pydict()
    assert (found["operation"], found["arrival"]) == ([READ, FLUSH, WRITE], [5, 7, 9])
    assert found["started"] == found["completed"] == [None] * 3


def test_each_device_has_the_requests_that_its_own_events_tell(tmp_path: Path) -> None:
    """A device of device mapper has no driver's queue, and the disk below it has: neither hides the other."""
    upper = line("Q", "W", time=1, device="253,0") + line("C", "W", time=9, device="253,0")
    (tmp_path / "a").write_text(upper + line("Q", "W", time=2) + line("D", "W", time=3) + line("C", "W", time=8))
    found = table(tmp_path / "a").to_pydict()
    assert (found["label"], found["started"], found["completed"]) == (["253,0", "8,0"], [None, 3], [9, 8])


def test_a_device_that_comes_late_without_issues_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Devices are judged by the first events, where these tell enough."""
    monkeypatch.setattr("traces.format._block_events._JUDGED", 8)
    monkeypatch.setattr("traces.format._text._CHUNK", 600)
    text = "".join(line("D", "W", f"{8 * time} + 8 ", time) for time in range(40))
    (tmp_path / "a").write_text(text + line("Q", "W", time=50, device="253,0") + line("D", "R", time=51, device="8,16"))
    with pytest.warns(FlashsimWarning, match="1 requests have a Q and no D"):
        found = table(tmp_path / "a")
    assert found.num_rows == 41 and set(found.column("label").to_pylist()) == {"8,0", "8,16"}


@pytest.mark.parametrize("window", [1 << 16, 4])
def test_what_has_no_issue_is_counted_unless_it_is_part_of_another_request(
    window: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests that were merged have no D of their own, nor have two flushes that one serves; a D that was lost is told."""
    monkeypatch.setattr("traces.format._block_events._WINDOW", window)
    merged = [("Q", "W", "8 + 8 "), ("Q", "W", "16 + 8 "), ("M", "W", "16 + 8 "), ("D", "W", "8 + 16 "), ("C", "W", "8 + 16 ")]
    split = [("Q", "R", "800 + 16 "), ("X", "R", "800 / 808 "), ("D", "R", "800 + 8 "), ("D", "R", "808 + 8 ")]
    flushes = [("Q", "FWS", ""), ("Q", "FWS", ""), ("D", "FN", ""), ("C", "FN", "0 "), ("C", "FWS", "0 ")]
    ends = [("C", "R", "800 + 8 "), ("C", "R", "808 + 8 ")]
    whole = [*merged, *split, *flushes, *ends]

    def requests(events: list[tuple[str, str, str]]) -> int:
        (tmp_path / "a").write_text("".join(line(*event, time) for time, event in enumerate(events)))
        return table(tmp_path / "a").num_rows

    assert requests(whole) == 4
    lost = [("C", "R", "4096 + 8 "), *whole, ("Q", "W", "8 + 8 "), ("Q", "W", "64 + 8 "), ("C", "W", "64 + 8 "), ("Q", "R", "808 + 8 ")]
    with pytest.warns(FlashsimWarning, match="requests have a Q and no D|completions are of no whole request") as told:
        assert requests(lost) == 4
    assert [re.sub(".* a: | .*", "", str(each.message).partition("a: ")[2]) for each in told] == ["3", "2"]


@pytest.mark.parametrize(
    "text",
    [line("G", "R") + line("I", "R"), line("m", "N", "").replace("[x]", "note"), line("D", "R", "36 (12 00) ")],
    ids=["no stage of a request", "notes", "a command"],
)
def test_a_capture_without_requests_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(text)
    with pytest.raises(DamagedFileError, match="a has no request, read as blkparse"):
        table(tmp_path / "a")


@needs_blkparse
def test_commands_that_bypass_the_file_system_are_skipped_from_issue_to_completion(tmp_path: Path) -> None:
    rows = [
        (0x65617407, number + 1, 1000 * number, 8, 4096, (_READ | category) << 16 | action, 7, 8 << 20, 0, 0, 8 * (category >= 1 << 9))
        for number, (action, category) in enumerate([(7, 1 << 6), (7, 1 << 6 | 1 << 9), (8, 1 << 7 | 1 << 9), (8, 1 << 7)])
    ]
    first = written([np.array(rows, LITTLE)], tmp_path)
    (tmp_path / "text").write_text(text := blkparse(tmp_path))
    assert re.search(r" C +R \(.*\) \[0\]", text)
    for each in (first, tmp_path / "text"):
        assert [request[1:4] for request in requests_of(each)] == [(READ, 4096, 4096)]

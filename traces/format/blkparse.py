"""Lines as blkparse prints them by default: ``major,minor cpu sequence seconds pid action rwbs sector + sectors [process]``.

Events become requests as `traces.format._block_events` says.  Summaries are left out, wherever they stand, so that a file may hold several
outputs, one after the other.  What is written is what blkparse prints of the same trace in blktrace's binary format, if its first event is
at 0: blkparse counts times from there.

The letters of an operation are a preflush (F), R, W, D, N (no data), and of newer kernels ZA (zone append, a write) and other commands of
zones (ZR, ZF, ZO, ZC), then any of F (force unit access), A (read ahead), S (sync), M (metadata), U (untorn) and B (a barrier of old
kernels: a flush before, and force unit access).
"""

import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from flashsim.core import errors, units
from flashsim.core.kernel import inlined_kernel, lean_kernel
from flashsim.core.request import FLUSH, FORCE_UNIT_ACCESS, READ, SECTOR, TRIM, WRITE, Integers
from traces.file.schema import Batches
from traces.format import _block_events, _text
from traces.format._block_events import COMPLETED, FLUSH_BEFORE, ISSUED, NO_REQUEST, QUEUED, REQUEUED, Events
from traces.format._records import Bytes
from traces.format.base import Example

TITLE = "blkparse text"
BASIS = "blkparse's columns in its first lines; times in seconds, places in sectors of 512 B"
CARRIES = _block_events.CARRIES
LEAVES_OUT = _block_events.LEAVES_OUT
LABELS = _block_events.LABELS
RESOLUTION = 1

_BEGIN = rb"\d+,\d+[ \t]+\d+[ \t]+\d+[ \t]+\d+\.\d{9}[ \t]+\d+[ \t]+([A-Z]{1,2}|m)[ \t]+.*"
#: A last line, which nothing ends, that may be an event that was cut short.
_BEGUN = re.compile(rb"[\s\d,.]*(([A-Z]{1,2}|m)(\s.*)?)?")

# What a scanned line tells, by column.
_MAJOR, _MINOR, _TIME, _ACTION, _OPERATION, _FLAGS, _SECTOR, _SECTORS = range(8)
_COLUMNS = 8
# How a scan ends: at the end of the text, at a line that is no event, at a number that is too large, at an unknown operation or action.
_WHOLE, _NO_EVENT, _TOO_LARGE, _NO_OPERATION, _NO_ACTION = range(5)
_WHY = {_NO_EVENT: "it is not an event that blkparse prints", _TOO_LARGE: "a number is too large"}
_WHY |= {_NO_OPERATION: "its operation has letters that are not known", _NO_ACTION: "its action is not known"}
#: Letters of actions that are no request's: bounced, merged (F, M), got, inserted, plugged, slept, unplugged (T, U), split, remapped.
_OTHER_ACTIONS = b"ABFGIMPSTUX"
_BLANK, _TAB, _LINE_END, _COMMA, _POINT, _PLUS, _BRACKET, _ROUND, _ZERO, _A, _Z, _M, _D, _F, _W = b" \t\n,.+[(0AZmDFW"
_B, _C, _E, _METADATA, _N, _O, _R, _S, _U = b"BCEMNORSU"
#: Lines that are no events: of a summary, of files and programs.
_SUMMARY = re.compile(
    rb"[ \t]*([A-Z][A-Za-z .]*\d*:\s+\d.*|=== .* ===|(CPU\d+|Total) \(.*\):|Events \(.*\): .*|Throughput \(.*|Input file .* added|"
    rb"Trace started at .*|.*[^ ] \(\d+(, .*)?\))[ \t]*"
)
#: The parts of a line that are always the same.
_PROCESSOR, _PROCESS, _PLUS_SIGN, _BETWEEN, _NONE, _END, _END_OF_COMPLETION = (
    np.frombuffer(text, np.uint8) for text in (b"  0 ", b"     0  ", b" + ", b" ", b"0 ", b"[(null)]\n", b"[0]\n")
)
#: Lines that are judged: there may be one for each processor before the first event.
_JUDGED = 1000
#: A whole line fits; numbers are of at most 20 digits, and device, action and name of fewer letters.
_LONGEST_LINE = 160
EXAMPLE = Example(
    (
        b"  8,0    3        1     0.000000000   697  G   R 8 + 8 [fio]\n"
        b"  8,0    3        2     0.000001000   697  D   R 8 + 8 [fio]\n"
        b"  8,0    1        3     0.000090000     0  C   R 8 + 8 [0]\n"
        b"  8,16   1        4     0.000100500   697  D WFS 4096 + 16 [kworker/1:1H]\n"
        b"  8,16   1        5     0.000300500     0  C WFS 4096 + 16 [0]\n"
        b"  8,0    3        6     0.000400000   697  D  FN [kworker/0:1H]\n"
        b"  8,0    3        7     0.000500000   697  D   D 64 + 64 [fstrim]\n"
        b"CPU3 (sda):\n"
        b" Reads Queued:           1,        4KiB\t Writes Queued:           0,        0KiB\n"
    ),
    _block_events.EXAMPLE,
)


def recognise(path: Path) -> bool:
    """The columns that blkparse prints, after and between lines of its summaries."""
    lines = [line for line in _text.head(path, _JUDGED) if line]
    events = sum(re.fullmatch(_BEGIN, line) is not None for line in lines)
    return events > 0 and len(lines) <= 2 * (events + sum(_SUMMARY.fullmatch(line) is not None for line in lines))


def read(path: Path) -> Batches:
    return _block_events.requests(lambda: _events(path), path)


def _events(path: Path) -> Iterator[Events]:
    for first, begin, data in _text.chunks(path):
        ended = data if data.endswith(b"\n") else data + b"\n"
        text, at, line = np.frombuffer(ended, np.uint8), 0, first
        while at < len(ended):
            rows = np.empty((ended.count(b"\n", at), _COLUMNS), np.int64)
            count, lines, length, how = _scan(text[at:], rows)
            yield _decode(rows[:count])
            at, line = at + length, line + lines
            if how == _WHOLE:
                break
            end = ended.index(b"\n", at)
            if how == _NO_EVENT and _SUMMARY.fullmatch(ended, at, end):
                at, line = end + 1, line + 1
                continue
            if how != _TOO_LARGE and not data.endswith(b"\n") and _BEGUN.fullmatch(data):
                problem = f"trace: {path} is cut short in line {first} at byte {begin}"
                if first == 1:
                    raise errors.DamagedFileError(problem)
                warnings.warn(f"{problem}: it was read up to there", errors.FlashsimWarning, stacklevel=2)
                return
            unknown = {_NO_ACTION: 5, _NO_OPERATION: 6}.get(how)
            letters = "" if unknown is None else f": {errors.printable(ended[at:end].split()[unknown].decode('ascii', 'replace'))}"
            raise errors.DamagedFileError(f"trace: {path}, line {line}: {_WHY[how]}{letters}")


def _decode(rows: Integers) -> Events:
    events = _block_events.new_events(len(rows))
    for column, field in (("time", _TIME), ("action", _ACTION), ("flags", _FLAGS)):
        events[column] = rows[:, field]
    events["operation"] = rows[:, _OPERATION]
    events["device"] = rows[:, _MAJOR] << 20 | rows[:, _MINOR]
    events["offset"], events["length"] = rows[:, _SECTOR] * SECTOR, rows[:, _SECTORS] * SECTOR
    return events


@inlined_kernel
def _blanks(text: Bytes, at: int) -> int:
    while text[at] == _BLANK or text[at] == _TAB:
        at += 1
    return at


@inlined_kernel
def _number(text: Bytes, at: int) -> tuple[int, int]:
    """A number and where it ends, at its begin if there is none; one that is too large stays at `NEVER`."""
    value = 0
    while _ZERO <= text[at] <= _ZERO + 9:
        value = min(units.NEVER, value * 10 + int(text[at]) - _ZERO) if value < units.NEVER // 10 else units.NEVER
        at += 1
    return value, at


@lean_kernel
def _scan(text: Bytes, rows: Integers) -> tuple[int, int, int, int]:
    """Fill in a row an event Q, D, C or R; return their number, the number of lines before the end, where that is, and how it ended.

    The text ends with a line end, which no loop crosses.
    """
    at = count = line = 0
    while at < text.shape[0]:
        at = _blanks(text, at)
        if text[at] != _LINE_END:
            how, is_request_event = _event(text, at, rows[count])
            if how != _WHOLE:
                return count, line, at, how
            count += is_request_event
        while text[at] != _LINE_END:
            at += 1
        at += 1
        line += 1
    return count, line, at, _WHOLE


@inlined_kernel
def _is_other(action: int) -> bool:
    known = False
    for letter in _OTHER_ACTIONS:
        known |= action == letter
    return known


@lean_kernel
def _event(text: Bytes, at: int, row: Integers) -> tuple[int, bool]:
    """Read a line; return how it ends, and whether it is an event that is wanted."""
    begin = at
    row[_MAJOR], at = _number(text, at)
    if at == begin or text[at] != _COMMA:
        return _NO_EVENT, False
    row[_MINOR], at = _number(text, at + 1)
    seconds = fraction = 0
    for field in range(4):  # processor, sequence, time, process
        blank = _blanks(text, at)
        value, end = _number(text, blank)
        if blank == at or end == blank:
            return _NO_EVENT, False
        if field == 2:
            if text[end] != _POINT:
                return _NO_EVENT, False
            fraction, at = _number(text, end + 1)
            if at != end + 10:
                return _NO_EVENT, False
            seconds, end = value, at
        at = end
    blank = _blanks(text, at)
    action = int(text[blank])
    end = blank + (text[blank] != _LINE_END)
    if _A <= action <= _Z and _A <= text[end] <= _Z:  # one of two letters, such as UT
        action, end = 0, end + 1
    at = _blanks(text, end)
    if blank == end or at == end or not (_A <= action <= _Z or action == _M or action == 0):
        return _NO_EVENT, False
    if max(row[_MAJOR], row[_MINOR]) >= 1 << 20 or seconds >= units.NEVER // units.SECONDS:
        return _TOO_LARGE, False
    row[_TIME], row[_ACTION] = seconds * units.SECONDS + fraction, action
    if action not in (QUEUED, ISSUED, COMPLETED, REQUEUED):
        return (_WHOLE if action in (0, _M) or _is_other(action) else _NO_ACTION), False
    return _extent(text, at, row)


@lean_kernel
def _extent(text: Bytes, at: int, row: Integers) -> tuple[int, bool]:
    """Read operation and place; an operation without sectors is a flush or none that is a request, a command with its bytes no event."""
    begin, row[_SECTOR], row[_SECTORS] = at, 0, 0
    at, known = _kind(text, at, row)
    blank = _blanks(text, at)
    if not known:
        return _NO_OPERATION, False
    if at == begin or blank == at:
        return _NO_EVENT, False
    if text[blank] == _ROUND:  # bytes of a command that ended
        return _WHOLE, False
    if text[blank] != _BRACKET:
        sector, at = _number(text, blank)
        place = _blanks(text, at)
        if at == blank or place == at:
            return _NO_EVENT, False
        if text[place] == _ROUND:
            return _WHOLE, False
        if text[place] == _PLUS:
            blank = _blanks(text, place + 1)
            sectors, at = _number(text, blank)
            if blank == place + 1 or at == blank or _blanks(text, at) == at:
                return _NO_EVENT, False
            if sectors >= 1 << 32 or sector >= units.NEVER // SECTOR - (1 << 32):
                return _TOO_LARGE, False
            if sectors > 0:
                row[_SECTOR], row[_SECTORS] = sector, sectors
        elif text[place] != _BRACKET:  # otherwise the completion of a flush
            return _NO_EVENT, False
    if row[_SECTORS] == 0:
        row[_OPERATION] = FLUSH if row[_FLAGS] & FLUSH_BEFORE else NO_REQUEST
    return _WHOLE, True


@inlined_kernel
def _kind(text: Bytes, at: int, row: Integers) -> tuple[int, bool]:
    row[_OPERATION], row[_FLAGS] = NO_REQUEST, 0
    if text[at] == _F:
        row[_OPERATION], row[_FLAGS] = FLUSH, FLUSH_BEFORE
        at += 1
    if text[at] in (_R, _W, _D):
        row[_OPERATION] = READ if text[at] == _R else WRITE if text[at] == _W else TRIM
        at += 2 if text[at] == _D and text[at + 1] == _E else 1  # DE: a secure erase
    elif text[at] == _Z:
        zone = text[at + 1]
        if zone not in (_A, _R, _F, _O, _C):
            return at, False
        row[_OPERATION] = WRITE if zone == _A else NO_REQUEST
        at += 2
    elif text[at] == _N:
        at += 1
    while _A <= text[at] <= _Z:
        letter = text[at]
        if letter in (_F, _B):
            row[_FLAGS] |= FORCE_UNIT_ACCESS if letter == _F else FORCE_UNIT_ACCESS | FLUSH_BEFORE
        elif letter not in (_A, _S, _METADATA, _U):
            return at, False
        at += 1
    return at, True


def write(batches: Batches, path: Path) -> None:
    """Events of processor 0 and process 0, without a summary."""
    letters = np.zeros((4, 2, 3), np.uint8)  # by operation and force unit access, right-aligned
    for operation, text in ((READ, b"R"), (WRITE, b"W"), (TRIM, b"D"), (FLUSH, b"FN")):
        for forced in range(2):
            letters[operation, forced] = np.frombuffer((text + b"F" * forced).rjust(3)[-3:], np.uint8)
    count = 0
    with path.open("wb") as file:
        for events in _block_events.events_of(batches, "blkparse"):
            out = np.empty(len(events) * _LONGEST_LINE, np.uint8)
            file.write(out[: _print(events, count, letters, out)].data)
            count += len(events)


@lean_kernel
def _print(events: Events, count: int, letters: Bytes, out: Bytes) -> int:
    """Print a line an event into `out`; return where the last one ends."""
    at = 0
    for row in range(events.shape[0]):
        event = events[row]
        at = _put(out, at, event["device"] >> 20, 3, _BLANK)
        out[at] = _COMMA
        end = _put(out, at + 1, event["device"] & 0xFFFFF, 0, _BLANK)
        for place in range(end, at + 4):
            out[place] = _BLANK
        at = _text_at(out, max(end, at + 4), _PROCESSOR)
        at = _put(out, at, (count + row + 1) & 0xFFFFFFFF, 8, _BLANK)
        out[at] = _BLANK
        at = _put(out, at + 1, event["time"] // units.SECONDS, 5, _BLANK)
        out[at] = _POINT
        at = _text_at(out, _put(out, at + 1, event["time"] % units.SECONDS, 9, _ZERO), _PROCESS)
        out[at], out[at + 1] = event["action"], _BLANK
        for place in range(3):
            out[at + 2 + place] = letters[event["operation"], event["flags"] & FORCE_UNIT_ACCESS, place]
        out[at + 5] = _BLANK
        at += 6
        completed = event["action"] == COMPLETED
        if event["length"] > 0:
            at = _text_at(out, _put(out, at, event["offset"] // SECTOR, 0, _BLANK), _PLUS_SIGN)
            at = _text_at(out, _put(out, at, event["length"] // SECTOR, 0, _BLANK), _BETWEEN)
        elif completed:
            at = _text_at(out, at, _NONE)
        at = _text_at(out, at, _END_OF_COMPLETION if completed else _END)
    return at


@inlined_kernel
def _text_at(out: Bytes, at: int, text: Bytes) -> int:
    for place in range(text.shape[0]):
        out[at + place] = text[place]
    return at + len(text)


@inlined_kernel
def _put(out: Bytes, at: int, value: int, width: int, fill: int) -> int:
    """A number, right-aligned in at least `width` places; return where it ends."""
    digits, rest = 1, value // 10
    while rest > 0:
        digits, rest = digits + 1, rest // 10
    end = at + max(width, digits)
    for place in range(end - 1, at - 1, -1):
        out[place] = _ZERO + value % 10 if value > 0 or place == end - 1 else fill
        value //= 10
    return end

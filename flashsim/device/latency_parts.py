"""Latencies of requests in parts, from the record of what a drive's parts did (`flashsim.core.spans`).

The parts of a request sum to its latency, ns for ns.  They lie along one chain: from the page that was last back to the command, through
each server that served it and each wait before.  A wait counts for what held the server meanwhile.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numba import types

from flashsim.core import spans
from flashsim.core.kernel import kernel_of, lean_kernel
from flashsim.core.records import MATRIX, VECTOR
from flashsim.core.request import READ, WRITE, Completions, Integers, Requests
from flashsim.core.spans import Spans
from flashsim.device.device import Device
from flashsim.ssd.parameters import SsdParameters

#: Parts of a latency, by name.
PARTS = {
    "slot": "wait for a command slot",
    "submission": "submission",
    "controller_wait": "wait for the controller",
    "controller": "controller",
    "link_wait": "wait for the host link",
    "link": "host link",
    "bus_wait": "wait for the memory bus",
    "bus": "memory bus",
    "buffer": "wait for room in the write buffer",
    "own": "die busy with other pages of the request",
    "reads": "die busy with other reads",
    "programs": "die busy with programs",
    "erases": "die busy with erases",
    "collection": "die busy with garbage collection",
    "merges": "die busy with merges",
    "map": "die busy with the map",
    "wear": "die busy with wear levelling",
    "folding": "die busy with the SLC cache",
    "channel_wait": "wait for the flash channel",
    "channel": "flash channel",
    "cells": "flash cells",
    "retries": "read retries",
    "pace": "pace of writes while collecting",
    "queue": "wait behind other commands",
    "destage": "wait for the mechanism",
    "seek": "seek",
    "rotation": "rotation",
    "transfer": "transfer",
    "hit": "cache hit",
    "other": "other waits",
}
_AT = {name: place for place, name in enumerate(PARTS)}
(
    _SLOT, _SUBMISSION, _CONTROLLER_WAIT, _CONTROLLER, _LINK_WAIT, _LINK, _BUS_WAIT, _BUS, _BUFFER, _OWN, _READS, _PROGRAMS, _ERASES,
    _COLLECTION, _MERGES, _MAP, _WEAR, _FOLDING, _CHANNEL_WAIT, _CHANNEL, _CELLS, _RETRIES, _PACE,
) = range(23)  # fmt: skip
_OTHER = _AT["other"]
#: Parts of a wait for a die by the cause of its work; the host's depends on its kind.
_OF_CAUSE = (_PROGRAMS, _COLLECTION, _MERGES, _MAP, _WEAR, _FOLDING)
#: Parts of a command on a disk by the kind of span.
_ON_DISK = {
    spans.COMMAND: "controller", spans.DESTAGE: "destage", spans.SEEK: "seek", spans.ROTATION: "rotation", spans.TRANSFER: "transfer",
    spans.HIT: "hit",
}  # fmt: skip

# Columns of the tables below: an anchor is a hold of the controller, the link, the bus or a channel by a request.
_A_KIND, _A_PAGE, _A_BEGIN, _A_END, _A_DIE, _A_SERVER = range(6)
_H_BEGIN, _H_END, _H_KIND, _H_CAUSE, _H_REQUEST = range(5)
_C_BEGIN, _C_END, _C_RETRY = range(3)
_T_SUBMITTED, _T_STARTED, _T_COMPLETED, _T_OPERATION = range(4)
#: Of the drive: dies, channels, submission times of reads and writes, the parts of waits that nothing explains at a die, before the link of
#: a write, and behind a write.
_D_DIES, _D_CHANNELS, _D_READ, _D_WRITE, _D_AT_DIE, _D_AT_LINK, _D_BEHIND = range(7)
#: In the place of a page: any anchor, and no page's.
_ANY, _NONE = -2, -3


def parts_of(device: Device, record: Spans, requests: Mapping[str, Integers] | Requests, completions: Completions) -> Integers:
    """Parts of the latencies of requests that a device has completed, shape (requests, `PARTS`), ns."""
    if (drive := device.preset.flash) is not None:
        return parts_of_flash(record, requests["operation"].astype(np.int64), completions, drive)
    return parts_of_disk(record, completions)


def parts_of_disk(record: Spans, completions: Completions) -> Integers:
    """Parts of the latencies of requests that have completed, shape (requests, `PARTS`), ns; requests on a disk, by their `record`."""
    result = np.zeros((len(completions), len(PARTS)), np.int64)
    rows, known = _rows_of(record["request"], completions)
    for kind, name in _ON_DISK.items():
        own = known & (record["kind"] == kind)
        np.add.at(result[:, _AT[name]], rows[own], (record["end"] - record["begin"])[own])
    result[:, _SLOT] = completions["started"] - completions["submitted"]
    result[:, _AT["queue"]] = completions["completed"] - completions["submitted"] - result.sum(axis=1)
    return result


def parts_of_flash(record: Spans, operations: Integers, completions: Completions, drive: SsdParameters) -> Integers:
    """Parts of the latencies of requests that have completed, shape (requests, `PARTS`), ns; requests on a flash drive, by its `record`.

    The record has all holds that ended while the requests were on the drive; `operations` are the requests'.
    """
    result = np.zeros((len(completions), len(PARTS)), np.int64)
    rows, known = _rows_of(record["request"], completions)
    is_anchor = known & (record["cause"] == spans.HOST) & np.isin(record["kind"], (spans.COMMAND, spans.TRANSFER))
    is_cells = record["kind"] == spans.CELLS
    anchors, anchor_rows = record[is_anchor], rows[is_anchor]
    order = np.lexsort((anchors["begin"], anchors["end"], anchor_rows))
    anchors, anchor_rows = anchors[order], anchor_rows[order]
    held, cells, held_rows = record[~is_cells], record[is_cells], np.where(known, rows, -1)[~is_cells]
    order = np.lexsort((held["begin"], held["server"]))
    held, held_rows = held[order], held_rows[order]
    cells = cells[np.lexsort((cells["end"], cells["server"]))]
    servers = drive.dies + drive.channels + 3
    times = np.stack([*(completions[name] for name in ("submitted", "started", "completed")), operations], axis=1).astype(np.int64)
    at_die = _MAP if drive.map_cache else _OTHER
    numbers = np.array([
        drive.dies, drive.channels, drive.read_submission, drive.write_submission, at_die, _BUFFER if drive.write_buffer else _OTHER,
        _PACE if drive.collection_rate else _OTHER,
    ])  # fmt: skip
    _divide(
        result, times, _columns(anchors, "kind", "page", "begin", "end", "die", "server"), _firsts(anchor_rows, len(completions)),
        np.column_stack([_columns(held, "begin", "end", "kind", "cause"), held_rows]), _firsts(held["server"], servers),
        np.column_stack([_columns(cells, "begin", "end"), _retry_times(cells, drive)]), _firsts(cells["server"], drive.dies), numbers,
    )  # fmt: skip
    return result


def _rows_of(requests: Integers, completions: Completions) -> tuple[Integers, Any]:
    """The row of the completion of each request, by its id, and whether it is among them."""
    order = np.argsort(completions["id"], kind="stable")
    ids = completions["id"][order]
    places = np.minimum(np.searchsorted(ids, requests), max(0, len(ids) - 1))
    known = ids[places] == requests if len(ids) else np.zeros(len(requests), bool)
    return order[places] if len(ids) else places, known


def _firsts(groups: Any, count: int) -> Integers:
    """Where each of so many groups begins in an ordered table, and where the last ends."""
    result: Integers = np.searchsorted(groups, np.arange(count + 1)).astype(np.int64)
    return result


def _columns(table: Spans, *names: str) -> Integers:
    return np.stack([table[name].astype(np.int64) for name in names], axis=1)


def _retry_times(cells: Spans, drive: SsdParameters) -> Integers:
    """How much longer each read of cells took than one that is not repeated."""
    usual = np.array([*(drive.read_pages or (drive.read,) * drive.levels), *[drive.read] * (spans.SLC - drive.levels), drive.read])
    usual[spans.SLC] = drive.slc_read or drive.read
    result: Integers = cells["end"] - cells["begin"] - usual[np.where(cells["level"] < 0, 0, cells["level"])]
    return np.maximum(0, result)


@lean_kernel
def _find(table: Any, column: int, first: int, end: int, time: int) -> int:
    """The last row from `first` on and before `end` whose column, which ascends, is at most `time`; `first` - 1 if none is."""
    low, high = first, end
    while low < high:
        middle = (low + high) // 2
        if table[middle, column] <= time:
            low = middle + 1
        else:
            high = middle
    return low - 1


@lean_kernel
def _part_of_hold(held: Any, at: int, row: int, own: int, wait: int) -> int:
    """The part of a wait that a hold is to blame for: of a die (`wait` < 0) by its work, elsewhere by whether it is the request's."""
    if wait >= 0:
        return own if held[at, _H_REQUEST] == row else wait
    cause, kind = held[at, _H_CAUSE], held[at, _H_KIND]
    if cause != spans.HOST:
        return int(_OF_CAUSE[cause])
    if held[at, _H_REQUEST] == row:
        return own
    if kind in (spans.READ, spans.FETCH):
        return _READS
    return _ERASES if kind == spans.ERASE else _PROGRAMS


@lean_kernel
def _divide_wait(
    parts: Any, row: int, held: Any, first: int, end: int, begins: int, ends: int, own: int, wait: int, idle: int, program: int, of: int
) -> None:  # fmt: skip
    """Divide a wait for a server among what held it; holds of the program in the row `program` (-1: none) count for the part `of`."""
    at, time = max(first, _find(held, _H_BEGIN, first, end, begins)), begins
    while at < end and held[at, _H_BEGIN] < ends:
        stop = min(held[at, _H_END], ends)
        if stop > time:
            begin = max(held[at, _H_BEGIN], time)
            parts[row, idle] += begin - time
            part = _part_of_hold(held, at, row, own, wait)
            if program >= 0 and held[at, _H_KIND] == spans.PROGRAM and held[at, _H_REQUEST] == held[program, _H_REQUEST]:
                part = of
            parts[row, part] += stop - begin
            time = stop
        at += 1
    parts[row, idle] += max(0, ends - time)


@lean_kernel
def _before(anchors: Any, first: int, at: int, time: int, page: int) -> int:
    """The last anchor before `at` that ended by `time`: one of the page (or `_ANY`), or else a command; `first` - 1 if there is none."""
    command = first - 1
    for place in range(at - 1, first - 1, -1):
        if anchors[place, _A_END] > time:
            continue
        if page == _ANY or (anchors[place, _A_PAGE] == page and anchors[place, _A_KIND] == spans.TRANSFER):
            return place
        if command < first and anchors[place, _A_KIND] == spans.COMMAND:
            command = place
    return command


@lean_kernel
def _back_to_command(parts: Any, row: int, anchors: Any, first: int, at: int, held: Any, held_firsts: Any, start: int) -> int:
    """Divide the time of a command, from where it leaves the controller; return the anchor before it, or `first` - 1."""
    server, begin = anchors[at, _A_SERVER], anchors[at, _A_BEGIN]
    parts[row, _CONTROLLER] += anchors[at, _A_END] - begin
    before = _before(anchors, first, at, begin, _ANY)
    since, idle = (anchors[before, _A_END], _SLOT) if before >= first else (start, _OTHER)
    first_hold, last_hold = held_firsts[server], held_firsts[server + 1]
    _divide_wait(parts, row, held, first_hold, last_hold, since, begin, _CONTROLLER, _CONTROLLER_WAIT, idle, -1, 0)
    return int(before)


@lean_kernel
def _back_over_link(
    parts: Any, row: int, anchors: Any, first: int, at: int, held: Any, held_firsts: Any, start: int, is_link: bool, unfilled: int
) -> int:  # fmt: skip
    """Divide the time of a page on the link or the bus, and of its wait; nothing explains the wait of a write but the part `unfilled`."""
    server, begin = anchors[at, _A_SERVER], anchors[at, _A_BEGIN]
    own, wait = (_LINK, _LINK_WAIT) if is_link else (_BUS, _BUS_WAIT)
    parts[row, own] += anchors[at, _A_END] - begin
    before = _before(anchors, first, at, begin, anchors[at, _A_PAGE])
    enters = before < first or anchors[before, _A_KIND] == spans.COMMAND
    since = anchors[before, _A_END] if before >= first else start
    first_hold, last_hold = held_firsts[server], held_firsts[server + 1]
    _divide_wait(parts, row, held, first_hold, last_hold, since, begin, own, wait, unfilled if enters else _OTHER, -1, 0)
    return int(before)


@lean_kernel
def _back_from_die(
    parts: Any, row: int, anchors: Any, first: int, at: int, held: Any, held_firsts: Any, cells: Any, cell_firsts: Any, start: int,
    at_die: int,
) -> int:  # fmt: skip
    """Divide the time of a page on its channel, in the cells before if it is read, and of its waits for both."""
    server, begin, die = anchors[at, _A_SERVER], anchors[at, _A_BEGIN], anchors[at, _A_DIE]
    parts[row, _CHANNEL] += anchors[at, _A_END] - begin
    hold = _find(held, _H_BEGIN, held_firsts[die], held_firsts[die + 1], begin)
    is_program = hold >= held_firsts[die] and held[hold, _H_KIND] == spans.PROGRAM
    ready, read = begin, _find(cells, _C_END, cell_firsts[die], cell_firsts[die + 1], begin)
    if not is_program and read >= cell_firsts[die]:
        out, ready = max(start, cells[read, _C_END]), max(start, cells[read, _C_BEGIN])
        first_hold, last_hold = held_firsts[server], held_firsts[server + 1]
        _divide_wait(parts, row, held, first_hold, last_hold, out, begin, _CHANNEL, _CHANNEL_WAIT, _OTHER, -1, 0)
        again = min(out - ready, cells[read, _C_RETRY])
        parts[row, _RETRIES] += again
        parts[row, _CELLS] += out - ready - again
    before = _before(anchors, first, at, ready, anchors[at, _A_PAGE] if is_program else _NONE)
    since = min(ready, anchors[before, _A_END] if before >= first else start)
    program = hold if is_program else -1
    _divide_wait(parts, row, held, held_firsts[die], held_firsts[die + 1], since, ready, _OWN, -1, at_die, program, _CHANNEL_WAIT)
    return int(before)


@kernel_of(types.void(MATRIX, MATRIX, MATRIX, VECTOR, MATRIX, VECTOR, MATRIX, VECTOR, VECTOR), seconds=3)
def _divide(
    parts: Any, times: Any, anchors: Any, anchor_firsts: Any, held: Any, held_firsts: Any, cells: Any, cell_firsts: Any, drive: Any
) -> None:  # fmt: skip
    link = drive[_D_DIES] + drive[_D_CHANNELS]
    for row in range(times.shape[0]):
        first, at = anchor_firsts[row], anchor_firsts[row + 1] - 1
        start, time, operation = times[row, _T_STARTED], times[row, _T_COMPLETED], times[row, _T_OPERATION]
        on_way = min(start - times[row, _T_SUBMITTED], drive[_D_READ if operation == READ else _D_WRITE])
        parts[row, _SUBMISSION] += on_way
        parts[row, _SLOT] += start - times[row, _T_SUBMITTED] - on_way
        while at >= first and anchors[at, _A_END] > time:  # what a write leaves behind
            at -= 1
        if at < first:
            parts[row, _OTHER] += time - start
            continue
        die, end = anchors[at, _A_DIE], anchors[at, _A_END]
        if die >= 0:  # the page has come to its die, and is programmed
            program = _find(held, _H_BEGIN, held_firsts[die], held_firsts[die + 1], anchors[at, _A_BEGIN])
            _divide_wait(parts, row, held, held_firsts[die], held_firsts[die + 1], end, time, _OWN, -1, _OTHER, program, _CELLS)
        else:
            parts[row, drive[_D_BEHIND] if operation == WRITE else _OTHER] += time - end
        while at >= first:
            server = anchors[at, _A_SERVER]
            if server == link + 1:
                at = _back_to_command(parts, row, anchors, first, at, held, held_firsts, start)
            elif server >= link:
                unfilled = drive[_D_AT_LINK] if operation == WRITE else _OTHER
                at = _back_over_link(parts, row, anchors, first, at, held, held_firsts, start, server == link, unfilled)
            else:
                at = _back_from_die(parts, row, anchors, first, at, held, held_firsts, cells, cell_firsts, start, drive[_D_AT_DIE])

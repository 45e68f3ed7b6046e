"""Content of a drive after a power cut: the law that every simulated drive keeps, and what the drive itself then holds.

Durable are writes that were acknowledged with forced unit access, or before the arrival of a flush that completed, and all that were
acknowledged by a drive that writes through.  Tests of drives hold what is left against the law; crashes of databases make pages of it.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from flashsim.core.model import PowerCut
from flashsim.core.request import FLUSH, FORCE_UNIT_ACCESS, SECTOR, TRIM, WRITE, Completions, Integers, Requests


def durable_writes(requests: Requests, acknowledged: Completions, writes_through: bool) -> set[int]:
    """Writes that no power cut may take, by their places among the requests.

    `requests`: all requests of the drive, whose ids are their places; `acknowledged`: those that had completed; `writes_through`: whether
    the drive acknowledges a write when it is durable.
    """
    places: Integers = acknowledged["id"]
    operations: Integers = requests["operation"][places]
    writes, flushes = acknowledged[operations == WRITE], acknowledged[operations == FLUSH]
    kept = requests["flags"][writes["id"]] & FORCE_UNIT_ACCESS != 0
    kept |= writes["completed"] <= flushes["submitted"].max(initial=-1)
    return set(writes["id"][kept | writes_through].tolist())


def flash_versions(requests: Requests, flash_page: int) -> Iterator[tuple[int, int, int]]:
    """Each flash page that a write touches or a trim covers, in order: the request, the page, and the write id that the drive gives it.

    Requests are of one submission queue, and none depends on another.
    """
    version = 1
    for request, row in enumerate(requests):
        offset, end = int(row["offset"]), int(row["offset"] + row["length"])
        if row["operation"] not in (WRITE, TRIM):
            continue
        for page in range(offset // flash_page, -(-end // flash_page)):
            if row["operation"] == WRITE or (offset <= page * flash_page and (page + 1) * flash_page <= end):
                yield request, page, version
                version += 1


def vanished_writes(drive: Any, requests: Requests, cut: PowerCut, acknowledged: Completions, flash_page: int) -> set[int]:
    """Acknowledged writes whose data are gone, as far as the drive can say; without flash pages by what the cut reports."""
    if not flash_page:
        return set(getattr(cut, "vanished", np.zeros(0, np.int64)).tolist())
    trimmed = [(row["offset"], row["offset"] + row["length"]) for row in requests if row["operation"] == TRIM]
    gone = set()
    for request, page, version in flash_versions(requests, flash_page):
        is_trimmed = any(first < (page + 1) * flash_page and page * flash_page < last for first, last in trimmed)
        if requests["operation"][request] == WRITE and drive.version(page) < version and not is_trimmed:
            gone.add(request)
    return gone & set(acknowledged["id"].tolist())


def written_sectors(drive: Any, requests: Requests, cut: PowerCut, flash_page: int) -> dict[int, int]:
    """The write that each sector holds after a power cut, by its place among the requests; no entry where there is none.

    Of writes that were not acknowledged a flash drive says which are on flash; of a disk none counts as done.  No sector is trimmed.
    """
    sectors: dict[int, int] = {}
    if flash_page:
        there = ((request, page) for request, page, version in flash_versions(requests, flash_page) if version <= drive.version(page))
    else:
        gone = {*cut.lost.tolist(), *getattr(cut, "vanished", np.zeros(0, np.int64)).tolist()}
        there = ((request, 0) for request in np.flatnonzero(requests["operation"] == WRITE).tolist() if request not in gone)
    for request, page in there:
        first, behind = (int(requests["offset"][request]) + each for each in (0, int(requests["length"][request])))
        if flash_page:
            first, behind = max(first, page * flash_page), min(behind, (page + 1) * flash_page)
        sectors |= dict.fromkeys(range(first // SECTOR, behind // SECTOR), request)
    return sectors

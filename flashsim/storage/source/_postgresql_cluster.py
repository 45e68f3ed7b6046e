"""The cluster around a PostgreSQL relation file: whether its server runs, its control file, and which transactions committed.

    pg_xact/0000 ...   2 bits a transaction, 2**20 transactions a file:
                       0 it ended with the server, 1 committed, 2 aborted, 3 part of another that ended with the server
    pg_multixact       transactions that hold rows together: where each group begins among all members (4 bytes a group),
                       and members by fours: 4 bytes of what they do to the row, 4 transactions of 4 bytes; 409 fours a page

Source: src/backend/access/transam/clog.c and multixact.c, src/include/catalog/pg_control.h of PostgreSQL 15.
"""

import os
import struct
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from flashsim.core.errors import DamagedFileError, MissingFileError, RefusedError
from flashsim.core.request import Integers
from flashsim.storage.page._postgresql import BOOTSTRAP_TRANSACTION, FIRST_TRANSACTION, FROZEN_TRANSACTION, PAGE_SIZE

#: Most folders from a relation file up to its cluster's: ``base/16384/16385``, and ``pg_tblspc/16400/PG_15_202209061/16384/16385``.
_HIGHEST = 5
#: Files that mark a cluster's folder.
_MARKS = ("global/pg_control", "pg_xact", "pg_clog", "postmaster.pid")
#: A number in the control file whose place differs from release to release; other numbers stand beside it in all of them.
_MARK_IN_CONTROL = struct.pack("<d", 1234567.0)
_BLOCK_SIZE, _CHECKSUMS = 8, 44
_STATE_AT, _SHUT_DOWN = 16, (1, 2)

_A_BYTE, _A_FILE = 4, 1 << 20
_COMMITTED = 1
_GROUPS_A_FILE, _FOURS_A_PAGE, _PAGES_A_FILE = 1 << 16, 409, 32
#: Least number of a group member's action that changes the row, rather than locks it.
_CHANGES, _MOST_MEMBERS = 4, 1 << 16


@dataclass(frozen=True)
class Cluster:
    """A cluster whose server does not run."""

    #: None where a file lies in no cluster.
    folder: Path | None
    #: Whether pages have them; None where nothing tells.
    checksums: bool | None = None
    #: Those that were read.
    files: dict[Path, npt.NDArray[np.uint8] | None] = field(default_factory=dict)

    def committed_mask(self, transactions: Integers) -> npt.NDArray[np.bool_]:
        """Mask of the transactions that were committed, shape (n,)."""
        is_committed = (transactions == BOOTSTRAP_TRANSACTION) | (transactions == FROZEN_TRANSACTION)
        ordinary = transactions >= FIRST_TRANSACTION
        segments = transactions // _A_FILE
        for segment in np.unique(segments[ordinary]).tolist():
            mine = ordinary & (segments == segment)
            inside = transactions[mine] % _A_FILE
            states = self._states(segment)
            beyond = inside // _A_BYTE >= len(states)
            if beyond.any():
                raise self._untold(int(transactions[mine][beyond][0]))
            is_committed[mine] = (states[inside // _A_BYTE] >> (inside % _A_BYTE * 2).astype(np.uint8)) & 3 == _COMMITTED
        return is_committed

    def changers(self, groups: Integers) -> Integers:
        """The transaction of each group of several that changed the row which they held, 0 if none did; shape (n,)."""
        distinct, place = np.unique(groups, return_inverse=True)
        return np.array([self._changer(group) for group in distinct.tolist()], np.int64)[place]

    def _changer(self, group: int) -> int:
        file, place = divmod(group, _GROUPS_A_FILE)
        first = self._number("offsets", file, 4 * place)
        end = self._number("offsets", file, 4 * place + 4) if place + 1 < _GROUPS_A_FILE else 0
        if not first or not 0 <= (end or first) - first <= _MOST_MEMBERS:
            raise DamagedFileError(f"{self.folder}/pg_multixact: it lists no transactions that held rows as group {group}")
        for member in range(first, end or first + _MOST_MEMBERS):  # the last group, of all or of a file, has no end
            page, inside = divmod(member, 4 * _FOURS_A_PAGE)
            file, page = divmod(page, _PAGES_A_FILE)
            four = page * PAGE_SIZE + inside // 4 * 20
            transaction = self._number("members", file, four + 4 + inside % 4 * 4)
            if not transaction or self._number("members", file, four) >> 8 * (inside % 4) & 0xFF >= _CHANGES:
                return transaction
        return 0

    def _number(self, kind: str, segment: int, at: int) -> int:
        data = self._read(f"pg_multixact/{kind}", segment)
        if data is None or at + 4 > len(data):
            raise MissingFileError(f"several transactions held a row while one changed it, and no pg_multixact/{kind} says which one did")
        return int.from_bytes(data[at : at + 4].tobytes(), "little")

    def _states(self, segment: int) -> npt.NDArray[np.uint8]:
        for name in ("pg_xact", "pg_clog"):
            states = self._read(name, segment)
            if states is not None:
                return states
        raise self._untold(segment * _A_FILE)

    def _read(self, name: str, segment: int) -> npt.NDArray[np.uint8] | None:
        """A file of a folder that is cut in many; None if there is none."""
        path = self.folder / name / f"{segment:04X}" if self.folder else Path()
        if path not in self.files:
            self.files[path] = np.fromfile(path, np.uint8) if path.is_file() else None
        return self.files[path]

    def _untold(self, transaction: int) -> MissingFileError:
        where = f"pg_xact of {self.folder} does not reach" if self.folder else "there is no pg_xact two folders up"
        return MissingFileError(f"whether transaction {transaction} or later ones were committed is unknown: {where}")


def cluster_of(path: Path) -> Cluster:
    """The cluster that a relation file lies in, if in any."""
    above = list(path.absolute().parents)[1:_HIGHEST]
    folder = next((each for each in above if any((each / mark).exists() for mark in _MARKS)), None)
    if folder is None:
        return Cluster(None)
    _refuse_running(folder)
    control = folder / "global" / "pg_control"
    if not control.is_file():
        return Cluster(folder)
    data = control.read_bytes()
    mark = data.find(_MARK_IN_CONTROL)
    if len(data) != PAGE_SIZE or not 0 <= mark < PAGE_SIZE // 2:
        raise DamagedFileError(f"{control}: it is not a control file of a cluster of this machine's byte order")
    (state,) = struct.unpack_from("<i", data, _STATE_AT)
    if state not in _SHUT_DOWN:
        why = "its server did not shut down, so that pages may be older than its log; start it and stop it once"
        raise RefusedError(f"{folder}: {why}")
    (size,) = struct.unpack_from("<I", data, mark + _BLOCK_SIZE)
    (checksums,) = struct.unpack_from("<I", data, mark + _CHECKSUMS)
    if size != PAGE_SIZE:
        raise DamagedFileError(f"{control}: its pages are of {size} B, but only those of {PAGE_SIZE} B are read")
    return Cluster(folder, checksums != 0)


def _refuse_running(folder: Path) -> None:
    """Refuse a cluster whose server runs: the newest rows may be in its memory alone."""
    try:
        process = abs(int((folder / "postmaster.pid").read_text().split()[0]))
        os.kill(process, 0)
    except PermissionError:  # somebody else's process
        pass
    except (OSError, ValueError, IndexError, OverflowError):
        return
    raise RefusedError(f"{folder}: a server runs there, as process {process}, and may have newer rows in memory; stop it first")

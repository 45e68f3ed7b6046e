"""A file of measured seek times: a line ``Seek distances measured: 87``, then lines ``distance, milliseconds``.

Some files have no such first line; some have a third column (how much the time varies), some a fourth: the times of writes.
"""

from dataclasses import dataclass
from pathlib import Path

from flashsim.core.errors import DamagedFileError, MissingFileError
from flashsim.hdd.diskspecs.block import Place

_HEADER = "seek distances measured:"


@dataclass(frozen=True)
class SeekCurve:
    """Pairs of a distance in cylinders, ascending from 1 or more, and ms; `writes` only where they differ."""

    reads: tuple[tuple[int, float], ...]
    writes: tuple[tuple[int, float], ...] = ()


def read(path: Path) -> SeekCurve:
    """The curve in a file."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as problem:
        raise MissingFileError(f"{path}: {problem.strerror}") from problem
    promised: int | None = None
    reads: list[tuple[int, float]] = []
    writes: list[tuple[int, float]] = []
    for number, line in enumerate(lines, 1):
        text = line.split("#")[0].strip()
        at = Place(path, number)
        if not text:
            continue
        if text.lower().startswith(_HEADER) and not reads and promised is None:
            promised = _whole(text[len(_HEADER) :].strip(), at)
            continue
        distance, times = _row(text, at)
        if reads and distance <= reads[-1][0]:
            raise DamagedFileError(f"{at}: distance {distance} follows {reads[-1][0]}, but distances must ascend")
        reads.append((distance, times[0]))
        if len(times) == 3:
            writes.append((distance, times[2]))
    if not reads or promised not in (None, len(reads)) or len(writes) not in (0, len(reads)):
        raise DamagedFileError(f"{path}:{len(lines)}: {len(reads)} distances, where {promised or 'at least 1'} were promised")
    return SeekCurve(tuple(reads), tuple(writes))


def _row(text: str, at: Place) -> tuple[int, list[float]]:
    parts = [part.strip() for part in text.split(",")]
    if len(parts) not in (2, 3, 4):
        raise DamagedFileError(f"{at}: 'distance, milliseconds' was expected, not '{text[:60]}'")
    try:
        times = [float(part) for part in parts[1:]]
    except ValueError:
        times = []
    if not times or not all(0 <= time < 10_000 for time in times):
        raise DamagedFileError(f"{at}: 'distance, milliseconds' was expected, not '{text[:60]}'")
    distance = _whole(parts[0], at)
    if distance < 0:
        raise DamagedFileError(f"{at}: distance {distance} must be at least 0")
    return distance, times


def _whole(text: str, at: Place) -> int:
    try:
        return int(text)
    except ValueError:
        raise DamagedFileError(f"{at}: a whole number was expected, not '{text[:60]}'") from None

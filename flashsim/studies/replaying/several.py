"""A trace of several devices, each replayed on a file of its own: which goes where, and what each showed beside what was recorded."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from flashsim.core.errors import InvalidParameterError, UnknownNameError
from flashsim.core.request import Completions
from flashsim.studies.presentation.tables import Entry, Table
from flashsim.studies.replaying.comparison import Comparison, known
from flashsim.studies.replaying.device_report import DeviceReport
from flashsim.studies.replaying.survey import Survey, column, limited
from traces.file.excerpt import Source, requests_of


def names_of(what: Survey) -> dict[int, str]:
    """What the devices of a trace are called, by number: as their requests are labelled, or by it where several are labelled alike."""
    often = Counter(what.labels.values())
    return {number: label if label and often[label] == 1 else str(number) for number, label in what.labels.items()}


def assigned(texts: Sequence[str]) -> dict[str, Path] | None:
    """What ``NAME=PATH`` say, by name; None of one text that is no such.

    Examples
    --------
    >>> assigned(["disk=./disk.bin", "1=/dev/sdb"])
    {'disk': PosixPath('disk.bin'), '1': PosixPath('/dev/sdb')}
    """
    paths: dict[str, Path] = {}
    for text in texts:
        name, sign, path = text.partition("=")
        if not (name and sign and path) or os.sep in name:
            if len(texts) == 1:
                return None
            raise InvalidParameterError("on", text, "of several each is NAME=PATH: a device of the trace, and its file or block device")
        if name in paths:
            raise InvalidParameterError("on", text, f"{name} has {paths[name]} already")
        paths[name] = Path(path)
    return paths


def targets_of(paths: Mapping[str, Path], what: Survey) -> dict[int, Path]:
    """Where each device of a trace goes, by its number."""
    names = names_of(what)
    for name in paths:
        if name not in names.values() and name not in map(str, names):
            raise UnknownNameError("device of the trace", name, [*names.values()])
    targets = {number: path for number, name in names.items() if (path := paths.get(name, paths.get(str(number)))) is not None}
    for number, name in names.items():
        if name != str(number) and name in paths and str(number) in paths and str(number) not in names.values():
            raise InvalidParameterError("on", f"{number}={paths[str(number)]}", f"device {number} is {name}, and has {paths[name]} already")
        if number not in targets:
            raise InvalidParameterError("on", f"nothing for {name}", f"add {name}=PATH, or leave that device of the trace out")
    owners: dict[Path, str] = {}
    for number, path in targets.items():
        if (other := owners.setdefault(path.resolve(), names[number])) != names[number]:
            raise InvalidParameterError("on", f"{names[number]}={path}", f"{other} has that file: they would write over each other")
    return targets


class EachDevice:
    """What each device showed, and beside it what was recorded of it.

    Parameters
    ----------
    names
        Of the devices, by number.
    """

    def __init__(self, names: Mapping[int, str]) -> None:
        self.reports = {name: DeviceReport() for name in names.values()}
        self._names = names

    def add(self, batch: pa.RecordBatch, completions: Completions) -> None:
        """Take requests and their completions, in the same order."""
        device = column(batch, "device")
        for number, name in self._names.items():
            mine = device == number
            if mine.any():
                self.reports[name].add(batch.filter(pa.array(mine)), completions[mine])

    def beside(self, source: Source, limit: int | None) -> dict[str, Comparison]:
        """By device: what was recorded beside what it showed, of those of which something was recorded."""
        then = EachDevice(self._names)
        for batch in limited(requests_of(source), limit):
            then.add(*known(batch))
        comparisons = {}
        for name, report in self.reports.items():
            others = {"recorded": then.reports[name]} if then.reports[name].duration else {}
            comparisons[name] = Comparison("replayed", report, others)
        return comparisons


def table(compared: Mapping[str, Comparison]) -> Table:
    tables = {name: each.table() for name, each in compared.items()}
    rows: list[list[Entry]] = [[name, *row] for name, one in tables.items() for row in one.to_numpy()]
    first = next(iter(tables.values()))
    return Table(["device", *first.columns], rows, note=first.attrs["note"])


def as_dict(each: EachDevice, compared: Mapping[str, Comparison]) -> dict[str, Any]:
    return {name: report.as_dict({}) | {"runs": compared[name].as_dict()} for name, report in each.reports.items()}

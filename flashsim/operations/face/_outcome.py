"""What every result of an operation can do: say what it is, show itself as a table, be drawn, and tell where it comes from."""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from flashsim.core.errors import CapacityError, FlashsimError, InvalidParameterError
from flashsim.operations.face._operation import origin
from flashsim.studies.presentation.tables import Table
from flashsim.studies.presentation.terminal import Part
from flashsim.studies.runs.outputs import Outputs, write_json

if TYPE_CHECKING:  # a join on the command line needs neither
    import pandas as pd
    from matplotlib.figure import Figure

#: A result shows so many rows of its summary; the frame has all.
_SHOWN_ROWS = 60


def frame(rows: Any, columns: list[str] | None = None) -> pd.DataFrame:
    """Rows as a frame."""
    import pandas as pd

    return pd.DataFrame(rows, columns=columns)


class Picture:
    """A drawn result: Jupyter shows it, `save` writes it, and `figure` is Matplotlib's, to go on from.

    Parameters
    ----------
    figure
        Made without pyplot, so that nothing is shown twice.
    """

    def __init__(self, figure: Figure) -> None:
        self.figure = figure

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the picture into a file whose name ends in .svg, .png or .pdf."""
        from flashsim.studies.presentation.plots import FORMATS, save

        target = Path(path)
        if target.suffix not in FORMATS:
            raise InvalidParameterError("path", repr(str(path)), f"a picture's name must end in {', '.join(FORMATS)}")
        try:
            save(self.figure, target, target.suffix)
        except OSError as problem:
            raise FlashsimError(f"path: cannot write {path}: {problem.strerror or problem}") from problem
        return target

    def _repr_svg_(self) -> str:
        from flashsim.studies.presentation.plots import svg

        return svg(self.figure)

    def __repr__(self) -> str:
        width, height = self.figure.get_size_inches()
        return f"<Picture, {width:g} x {height:g} inches; .save('picture.svg') writes it, .figure is Matplotlib's>"


class Outcome(ABC):
    """A result: `summary` is its table, `plot` its picture, `provenance` all that it takes to make it again.

    Parameters
    ----------
    title
        What it is, in one line.
    provenance
        As `flashsim.core.provenance.provenance` gives it; by default that of the operation that is under way.
    """

    #: What the command writes besides JSON, where options name files for it.
    FILES: ClassVar[tuple[File, ...]] = ()
    #: The frames that a sweep keeps of each run.
    SWEPT: ClassVar[tuple[str, ...]] = ("summary",)
    #: What the command exits with.
    status = 0
    #: What was found, where that says itself what is written as JSON.
    done: Any = None

    def __init__(self, title: str, provenance: dict[str, Any] | None = None) -> None:
        self.title = title
        self.provenance = origin() if provenance is None else provenance

    @abstractmethod
    def summary(self) -> pd.DataFrame:
        """The result as one tidy frame; its columns say their units."""

    def as_dict(self) -> dict[str, Any]:
        """The result JSON-ready, as the command writes it."""
        if self.done is not None:
            told: dict[str, Any] = self.done.as_dict()
            return told
        return {"rows": self.summary().to_dict("records")}

    def printed(self) -> Iterator[Part]:
        """What the command prints."""
        summary = self.summary()
        yield self.title
        yield Table([str(name) for name in summary], summary.values.tolist())

    def _draw(self) -> Figure:
        """The picture."""
        raise FlashsimError(f"{type(self).__name__}: it has no picture")

    def _write_report(self, folder: Path) -> None:
        """Write ``report.html``, tables and pictures into an empty folder."""
        raise FlashsimError(f"{type(self).__name__}: it has no report")

    def plot(self, path: str | PathLike[str] | None = None) -> Picture:
        """Draw the result, and write the picture into a file if one is named (.svg, .png or .pdf)."""
        picture = Picture(self._draw())
        if path is not None:
            picture.save(path)
        return picture

    def report(self, folder: str | PathLike[str], *, force: bool = False) -> Path:
        """Write ``report.html``, every table (CSV) and every picture (SVG) into a folder; return the page's path."""
        with Outputs(force) as outputs:
            self._write_report(outputs.folder("folder", Path(folder)))
        return Path(folder) / "report.html"

    def __repr__(self) -> str:
        shown = self.summary().to_string(index=False, max_rows=_SHOWN_ROWS, float_format=lambda value: f"{value:,.4g}")
        return f"{self.title}\n{shown}"

    def _repr_html_(self) -> str:
        shown = self.summary().to_html(index=False, max_rows=_SHOWN_ROWS, float_format=lambda value: f"{value:,.4g}")
        return f"<p>{html.escape(self.title)}</p>\n{shown}"


@dataclass(frozen=True)
class File:
    """A file or folder that the command writes of an outcome.

    Parameters
    ----------
    write
        Writes the outcome into a place for now, which will have the other path as its name.
    endings
        What the name may end in; anything if there are none.
    """

    option: str
    metavar: str
    help: str
    write: Callable[[Any, Path, Path], None]
    endings: tuple[str, ...] = ()
    folder: bool = False


class Listing(Outcome):
    """What is listed, or was written: lines and tables for people, rows, and the same JSON-ready; without provenance."""

    def __init__(self, parts: Sequence[Part], rows: Sequence[Mapping[str, Any]], told: Mapping[str, Any] | None = None) -> None:
        super().__init__(next((part for part in parts if isinstance(part, str)), ""), {})
        self.parts, self.rows, self.told = parts, rows, told

    @classmethod
    def of(cls, table: pd.DataFrame) -> Listing:
        """A table, under the line that its attribute ``lead`` holds; JSON-ready is what ``told`` does."""
        lead = [f"{table.attrs['lead']}\n"] if "lead" in table.attrs else []
        shown = table.copy()
        shown.attrs = {name: value for name, value in table.attrs.items() if name not in ("lead", "told")}
        rows = [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]
        return cls([*lead, shown], rows, table.attrs.get("told"))

    def summary(self) -> pd.DataFrame:
        """A row each."""
        return frame(self.rows)

    def as_dict(self) -> dict[str, Any]:
        """All of it, JSON-ready."""
        return {"rows": list(self.rows)} if self.told is None else dict(self.told)

    def printed(self) -> Iterator[Part]:
        """Its lines and tables."""
        yield from self.parts


def _write_table(outcome: Outcome, target: Path, named: Path) -> None:
    summary = outcome.summary()
    summary.to_csv(target, index=False) if named.suffix == ".csv" else summary.to_parquet(target, index=False)


def _write_picture(outcome: Outcome, target: Path, named: Path) -> None:
    from flashsim.studies.presentation.plots import save

    save(outcome._draw(), target, named.suffix)


JSON = File(
    "--json",
    "FILE",
    "Also write the result as JSON.",
    lambda outcome, target, named: write_json(
        target, outcome.as_dict() | ({"provenance": outcome.provenance} if outcome.provenance else {})
    ),
)
TABLE = File("--out", "FILE.csv|.parquet", "Write the table.", _write_table, (".csv", ".parquet"))
PICTURE = File("--plot", "FILE.svg|.png|.pdf", "Write the picture.", _write_picture, (".svg", ".png", ".pdf"))
REPORT = File(
    "--out-dir",
    "DIR",
    "Write report.html, tables (CSV) and pictures (SVG).",
    lambda outcome, target, named: outcome._write_report(target),
    folder=True,
)


def point_of(function: Callable[..., Outcome], **fixed: Any) -> Callable[..., dict[str, Any]]:
    """What makes one run of a sweep: JSON-ready frames of its result by name; where it was refused, a row with the problem.

    The stamps of its files make it another run when they change.
    """

    def point(arguments: dict[str, Any], stamps: dict[str, str]) -> dict[str, Any]:
        try:
            done = function(**fixed | arguments)
        except (InvalidParameterError, CapacityError) as problem:
            return {"summary": [{"problem": str(problem)}]}
        return {name: getattr(done, name)().to_dict("records") for name in done.SWEPT}

    return point


def outstanding_frame(told: Iterable[tuple[str, Mapping[str, Any] | None]]) -> pd.DataFrame:
    """A row a device and level: how many requests were outstanding, and in which share of the time.

    Parameters
    ----------
    told
        Of each device, what `flashsim.core.outstanding.OutstandingLevel.as_dict` says; None where nothing is timed.
    """
    rows = [(device, level, share) for device, each in told if each for level, share in zip(each["levels"], each["shares"], strict=True)]
    return frame(rows, ["device", "outstanding", "share"])

"""Results of operations: each has a title, a table, a picture, a report and its provenance."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, ClassVar

from flashsim.core.errors import FlashsimError, InvalidParameterError, UnknownAttributeError, printable
from flashsim.experiments.runs.outputs import Outputs, write_json
from flashsim.operations.fields import text
from flashsim.operations.operation import in_words_of_python, origin

if TYPE_CHECKING:  # help texts need neither
    import pandas as pd
    from matplotlib.figure import Figure

    from flashsim.experiments.presentation.report import Report
    from flashsim.experiments.presentation.terminal import Part

#: Letters of a picture's title per inch of its width.
_LETTERS = 15
#: Names by which others have a result as a frame, and its times.
_OF_FRAMES = ("df", "frame", "data", "to_frame", "to_pandas", "dataframe", "table", "results")
_TIMES = ("time", "times", "seconds", "elapsed", "duration", "cost", "total")
#: Format of a summary as text; the frame has all rows.
_SHOWN: dict[str, Any] = {"index": False, "max_rows": 60, "float_format": "{:,.4g}".format}


def frame(rows: Any, columns: list[str] | None = None) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(rows, columns=columns)


class Picture:
    """A drawn result: Jupyter shows it, `save` writes it, and `figure` is Matplotlib's (without pyplot), to go on from."""

    def __init__(self, figure: Figure) -> None:
        self.figure = figure

    def save(self, path: str | PathLike[str], *, force: bool = False) -> Path:
        """Write the picture into a file whose name ends in .svg, .png or .pdf; one that exists is replaced only with `force`."""
        from flashsim.experiments.presentation.plots import FORMATS, save

        target = Path(text(path, "path"))
        if target.suffix not in FORMATS:
            raise InvalidParameterError("path", repr(str(path)), f"a picture's name must end in {', '.join(FORMATS)}")
        with in_words_of_python(), Outputs(force) as outputs:
            save(self.figure, outputs.file("path", target), target.suffix)
        return target

    def _repr_svg_(self) -> str:
        from flashsim.experiments.presentation.plots import svg

        return svg(self.figure)

    def __repr__(self) -> str:
        width, height = self.figure.get_size_inches()
        return f"<Picture, {width:g} x {height:g} inches; .save('picture.svg') writes it, .figure is Matplotlib's>"


class Outcome:
    """A result: `summary` is its table, `plot` its picture, `provenance` all that it takes to make it again.

    Parameters
    ----------
    result
        The study's result, with ``title()``, ``rows()`` and ``as_dict()`` unless the operation's own class overrides their use.
    title
        The result in one line.
    provenance
        See `flashsim.core.provenance.provenance`; by default that of the operation that is under way.
    """

    #: Output files of the command besides JSON.
    FILES: ClassVar[tuple[OutputFile, ...]] = ()
    #: The frames that a sweep keeps of each run.
    SWEPT: ClassVar[tuple[str, ...]] = ("summary",)
    #: Exit code of the command.
    status = 0

    def __init__(self, result: Any, title: str | None = None, provenance: dict[str, Any] | None = None) -> None:
        from flashsim.experiments.presentation.terminal import singular

        self.result = result
        self.title: str = singular(result.title() if title is None else title)
        self.provenance = origin() if provenance is None else provenance

    def summary(self) -> pd.DataFrame:
        """The result as one tidy frame; its columns say their units."""
        return frame(self.result.rows())

    def as_dict(self) -> dict[str, Any]:
        """The result JSON-ready, as the command writes it."""
        return dict(self.result.as_dict()) if hasattr(self.result, "as_dict") else {"rows": self.summary().to_dict("records")}

    def printout(self) -> Iterator[Part]:
        """The parts that the command prints."""
        yield from (self.title, self.summary())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or "result" not in self.__dict__:  # protocols of copies and displays; an object that is being made
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise UnknownAttributeError(f"{type(self).__name__} has no {name}; {self._instead_of(name)}")

    def _instead_of(self, name: str) -> str:
        """The method or column to use in place of an unknown attribute."""
        if name in _OF_FRAMES or hasattr(frame([]), name):
            return f".summary() is the result as a DataFrame{'' if name in _OF_FRAMES else f': .summary().{name}'}"
        columns = [str(each) for each in self.summary()]
        known = [each for each in dir(self) if not each.startswith("_")]
        times = [each for each in columns if each.endswith(("_s", "_ms", "_us", "_ns"))]
        if name in columns:
            return f"it is a column: .summary()['{name}']"
        if name in _TIMES and times:
            return f"times are columns of .summary(): {', '.join(times)}"
        close = get_close_matches(name, {*known, *columns}, n=3, cutoff=0.5)
        return f"did you mean {' or '.join(close)}?" if close else f"it has {', '.join(known)}"

    def _draw(self) -> Figure:
        """The picture."""
        raise FlashsimError(f"{type(self).__name__}: it has no picture")

    def _report(self) -> Report:
        """The report: sections of words, tables and pictures."""
        raise FlashsimError(f"{type(self).__name__}: it has no report")

    def _write_report(self, folder: Path) -> None:
        self._report().write(folder)

    def plot(self, path: str | PathLike[str] | None = None, *, force: bool = False) -> Picture:
        """Draw the result, and write the picture into a file if one is named (.svg, .png or .pdf), which `force` replaces."""
        picture = Picture(_picture_with_title(self))
        if path is not None:
            picture.save(path, force=force)
        return picture

    def report(self, folder: str | PathLike[str], *, force: bool = False) -> Path:
        """Write ``report.html``, every table (CSV) and every picture (SVG) into a folder; return the page's path."""
        with in_words_of_python(), Outputs(force) as outputs:
            self._write_report(outputs.folder("folder", Path(folder)))
        return Path(folder) / "report.html"

    def __repr__(self) -> str:
        lines = f"{self.title}\n{self.summary().to_string(**_SHOWN)}".split("\n")
        return "\n".join(map(printable, lines))

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self.title)}</p>\n{self.summary().to_html(**_SHOWN)}"


@dataclass(frozen=True)
class OutputFile:
    """A file or folder that the command writes of an outcome."""

    option: str
    metavar: str
    help: str
    #: Writes the outcome into a partial file, whose final path is the third argument.
    write: Callable[[Any, Path, Path], None]
    #: Suffixes of the name; any if empty.
    endings: tuple[str, ...] = ()
    folder: bool = False


class Listing(Outcome):
    """A list, or an account of a file written: lines and tables for people, rows, and a JSON-ready document; without provenance."""

    def __init__(self, parts: Sequence[Part], rows: Sequence[Mapping[str, Any]], document: Mapping[str, Any] | None = None) -> None:
        super().__init__(None, next((part for part in parts if isinstance(part, str)), ""), {})
        self.parts, self.rows, self.document = parts, rows, document

    @classmethod
    def of(cls, table: pd.DataFrame) -> Listing:
        """A table between the lines that its attributes ``lead`` and ``next`` (steps) hold; its attribute ``document`` is JSON-ready."""
        from flashsim.experiments.presentation.terminal import next_steps

        lead = [f"{table.attrs['lead']}\n"] if "lead" in table.attrs else []
        last: list[Part] = ["", next_steps(*table.attrs["next"])] if "next" in table.attrs else []
        frame = table.copy()
        frame.attrs = {name: value for name, value in table.attrs.items() if name not in ("lead", "next", "document")}
        rows = [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]
        return cls([*lead, frame, *last], rows, table.attrs.get("document"))

    def summary(self) -> pd.DataFrame:
        """The rows as a frame."""
        return frame(self.rows)

    def as_dict(self) -> dict[str, Any]:
        """The document, or else the rows, JSON-ready."""
        return {"rows": list(self.rows)} if self.document is None else dict(self.document)

    def printout(self) -> Iterator[Part]:
        """The lines and tables."""
        yield from self.parts


def _write_json(outcome: Outcome, target: Path, path: Path) -> None:
    write_json(target, outcome.as_dict() | ({"provenance": outcome.provenance} if outcome.provenance else {}))


def _write_table(outcome: Outcome, target: Path, path: Path) -> None:
    summary = outcome.summary()
    summary.to_csv(target, index=False) if path.suffix == ".csv" else summary.to_parquet(target, index=False)


def _picture_with_title(outcome: Outcome) -> Figure:
    """The picture of an outcome; its title is the outcome's if its axes have none."""
    figure = outcome._draw()
    if not figure.get_suptitle() and not any(axes.get_title(loc) for axes in figure.axes for loc in ("left", "center", "right")):
        letters = int(figure.get_size_inches()[0] * _LETTERS)
        figure.axes[0].set_title("\n".join(wrap(outcome.title, letters)), fontsize=9)
    return figure


def _write_picture(outcome: Outcome, target: Path, path: Path) -> None:
    from flashsim.experiments.presentation.plots import save

    save(_picture_with_title(outcome), target, path.suffix)


JSON = OutputFile("--json", "FILE", "Also write the result as JSON.", _write_json)
TABLE = OutputFile("--out", "FILE.csv|.parquet", "Write the table.", _write_table, (".csv", ".parquet"))
PICTURE = OutputFile("--plot", "FILE.svg|.png|.pdf", "Write the picture.", _write_picture, (".svg", ".png", ".pdf"))
REPORT = OutputFile(
    "--out-dir", "DIR", "Write report.html, tables (CSV) and pictures (SVG).", lambda outcome, target, _: outcome._write_report(target),
    folder=True,
)  # fmt: skip


def outstanding_frame(levels: Iterable[tuple[str, Mapping[str, Any] | None]]) -> pd.DataFrame:
    """One row per device and level: how many requests were outstanding, and in which share of the time.

    Levels are dictionaries of `flashsim.core.outstanding.OutstandingLevel.as_dict` by device; None where nothing is timed.
    """
    rows = [(device, level, share) for device, each in levels if each for level, share in zip(each["levels"], each["shares"], strict=True)]
    return frame(rows, ["device", "outstanding", "share"])

"""What every result of the front door can do: say what it is, show itself as a table, be drawn, and tell where it comes from."""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from experiments.presentation.plots import FORMATS, save, svg
from flashsim.core.errors import CapacityError, FlashsimError, InvalidParameterError

#: A result shows so many rows of its summary; the frame has all.
_SHOWN_ROWS = 60


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
        """Write the picture into a file whose name ends in .svg, .png or .pdf.

        Raises
        ------
        InvalidParameterError
            It ends otherwise.
        FlashsimError
            It cannot be written.
        """
        target = Path(path)
        if target.suffix not in FORMATS:
            raise InvalidParameterError("path", repr(str(path)), f"a picture's name must end in {', '.join(FORMATS)}")
        try:
            save(self.figure, target, target.suffix)
        except OSError as problem:
            raise FlashsimError(f"path: cannot write {path}: {problem.strerror or problem}") from problem
        return target

    def _repr_svg_(self) -> str:
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
        As `flashsim.core.provenance.provenance` gives it.
    """

    def __init__(self, title: str, provenance: dict[str, Any]) -> None:
        self.title = title
        self.provenance = provenance

    @abstractmethod
    def summary(self) -> pd.DataFrame:
        """The result as one tidy frame; its columns say their units."""

    @abstractmethod
    def _draw(self) -> Figure:
        """The picture."""

    def plot(self, path: str | PathLike[str] | None = None) -> Picture:
        """Draw the result, and write the picture into a file if one is named (.svg, .png or .pdf)."""
        picture = Picture(self._draw())
        if path is not None:
            picture.save(path)
        return picture

    def __repr__(self) -> str:
        shown = self.summary().to_string(index=False, max_rows=_SHOWN_ROWS, float_format=lambda value: f"{value:,.4g}")
        return f"{self.title}\n{shown}"

    def _repr_html_(self) -> str:
        shown = self.summary().to_html(index=False, max_rows=_SHOWN_ROWS, float_format=lambda value: f"{value:,.4g}")
        return f"<p>{html.escape(self.title)}</p>\n{shown}"


def point_of(function: Callable[..., Outcome], arguments: Mapping[str, Any], *frames: str) -> dict[str, Any]:
    """One run of a sweep, JSON-ready: frames of its result by name; where its parameters were refused, a row with the problem."""
    try:
        done = function(**arguments)
    except (InvalidParameterError, CapacityError) as problem:
        return {"summary": [{"problem": str(problem)}]}
    return {name: getattr(done, name)().to_dict("records") for name in frames}


def outstanding_frame(told: Iterable[tuple[str, dict[str, Any] | None]]) -> pd.DataFrame:
    """A row a device and level: how many requests were outstanding, and in which share of the time.

    Parameters
    ----------
    told
        Of each device, what `flashsim.core.outstanding.OutstandingLevel.as_dict` says; None where nothing is timed.
    """
    rows = [(device, level, share) for device, each in told if each for level, share in zip(each["levels"], each["shares"], strict=True)]
    return pd.DataFrame(rows, columns=["device", "outstanding", "share"])

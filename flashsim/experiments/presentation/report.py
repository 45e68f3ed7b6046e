"""A report: one HTML page that needs nothing else, and every table as CSV and picture as SVG beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from flashsim.experiments.presentation.tables import filled_columns, numeric, texts, write_csv


@dataclass(frozen=True)
class Section:
    """Words, tables and pictures under one title; figures become SVG.

    `on_terminal` tables are printed by the command as well; `terms` are words with their meaning.
    """

    title: str
    text: str = ""
    tables: Sequence[pd.DataFrame] = ()
    pictures: Mapping[str, Any] = field(default_factory=dict)
    on_terminal: bool = False
    terms: Sequence[tuple[str, str]] = ()

    def __post_init__(self) -> None:
        if any(not isinstance(picture, str) for picture in self.pictures.values()):
            from flashsim.experiments.presentation.plots import svg  # its libraries take a while to load

            pictures = {name: picture if isinstance(picture, str) else svg(picture) for name, picture in self.pictures.items()}
            object.__setattr__(self, "pictures", pictures)

    @property
    def id(self) -> str:
        return _plain(self.title.lower())

    def with_prefix(self, prefix: str) -> Section:
        """The section with pictures whose ids are their own: several stand in one page."""
        references = re.compile(r'\bid="|href="#|url\(#')
        pictures = {name: references.sub(rf"\g<0>{prefix}{_plain(name)}-", picture) for name, picture in self.pictures.items()}
        return replace(self, pictures=pictures)

    def write_files(self, folder: Path, prefix: str = "") -> None:
        for table in self.tables:
            if table.attrs.get("title"):
                write_csv(table, folder / f"{prefix}{table.attrs['title']}.csv")
        for name, picture in self.pictures.items():
            (folder / f"{prefix}{name}.svg").write_text(picture, encoding="utf-8")


def _plain(name: str) -> str:
    return re.sub(r"\W+", "-", name).strip("-")


#: Tables that need more pixels than the first have a class, after the next limit: where the page is no wider, rows become cards.
_LIMITS = (360, 600, 750, 900, 1050, 1200, 9999)
#: Pixels of a character and of a column's margins; a text column may be wrapped at so many characters.
_CHARACTER, _MARGINS, _WRAPPED = 7.5, 21, 22


@dataclass(frozen=True)
class Report:
    """The report of a command: work, device and result in a sentence; the numbers that a reader looks for first, by name; provenance.

    Sections without a text, a table or a picture are left out; `frames` are further tables, by name, that stand beside the page alone.
    """

    title: str
    lead: str
    figures: Sequence[tuple[str, str]]
    sections: Sequence[Section]
    origin: Mapping[str, Any]
    frames: Mapping[str, pd.DataFrame] = field(default_factory=dict)

    def html(self) -> str:
        sections = [
            section.with_prefix(f"{section.id}-") for section in self.sections if section.text or section.tables or section.pictures
        ]
        contents = [(section.id, section.title) for section in sections]
        return page("report.html.j2", self.title, contents, self.origin, report=self, sections=sections)

    def write(self, folder: Path) -> None:
        """Fill a folder with ``report.html``, the tables and the pictures."""
        (folder / "report.html").write_text(self.html(), encoding="utf-8")
        for section in self.sections:
            section.write_files(folder)
        for name, frame in self.frames.items():
            frame.to_csv(folder / f"{name}.csv", index=False)


def page(template: str, title: str, contents: Sequence[tuple[str, str]], origin: Mapping[str, Any], **values: Any) -> str:
    """The page of one of the templates, which extend the skeleton ``page.html.j2``, with further values of its own.

    `contents` are ids of the parts that the navigation leads to, and their titles.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape  # which takes a while to load
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("flashsim.experiments.presentation"),
        autoescape=select_autoescape(["html", "j2"]),
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    environment.filters |= {"inline": Markup, "cards": cards, "filled": filled_columns, "numeric": numeric, "texts": texts}
    common = {"title": title, "contents": contents, "provenance": json.dumps(origin, indent=2), "limits": _LIMITS[1:]}
    text = environment.get_template(template).render(common | values)
    return text.encode("utf-8", "replace").decode()  # names of files may hold what is no character


def cards(table: pd.DataFrame) -> str:
    """The class of a table that is too wide for some pages, where its rows become cards; nothing if it fits the narrowest.

    Examples
    --------
    >>> from flashsim.experiments.presentation.tables import Table
    >>> cards(Table(["join", "s"], [["bnl", 1.5]]))
    ''
    >>> cards(Table([f"column {number}" for number in range(20)], [[1e9] * 20]))
    'cards-9999'
    """
    width, rows, numbers = 0.0, texts(table), numeric(table)
    for index in filled_columns(table):
        entries, number = [row[index] for row in rows], numbers[index]
        widest = max(map(len, entries), default=0)
        words = [word for entry in (str(table.columns[index]), *(() if number else entries)) for word in entry.split()]
        wide = max([widest if number else min(widest, _WRAPPED), *map(len, words)])
        width += _CHARACTER * wide + _MARGINS
    least, *limits = _LIMITS
    return f"cards-{next(limit for limit in limits if width <= limit or limit == limits[-1])}" if width > least else ""

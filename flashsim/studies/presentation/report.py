"""A report: one HTML page that needs nothing else, and every table as CSV and picture as SVG beside it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import filled, numeric, texts

#: Tables that need more pixels than the first have a class, after the next limit: where the page is no wider, rows become cards.
_LIMITS = (360, 600, 750, 900, 1050, 1200, 9999)
#: Pixels of a character and of a column's margins; a text column may be wrapped at so many characters.
_CHARACTER, _MARGINS, _WRAPPED = 7.5, 21, 22


@dataclass(frozen=True)
class Report:
    """The report of a command."""

    title: str
    #: Work, device and result, in a sentence.
    lead: str
    #: The numbers that a reader looks for first, each with its name.
    figures: Sequence[tuple[str, str]]
    #: Sections; those without a text, a table or a picture are left out.
    sections: Sequence[Section]
    #: The provenance.
    origin: Mapping[str, Any]

    def html(self) -> str:
        sections = [section.scoped(f"{section.id}-") for section in self.sections if section.text or section.tables or section.pictures]
        contents = [(section.id, section.title) for section in sections]
        return page("report.html.j2", self.title, contents, self.origin, report=self, sections=sections)

    def write(self, folder: Path) -> None:
        """Fill a folder with ``report.html``, the tables and the pictures."""
        (folder / "report.html").write_text(self.html(), encoding="utf-8")
        for section in self.sections:
            section.write_files(folder)


def page(template: str, title: str, contents: Sequence[tuple[str, str]], origin: Mapping[str, Any], **values: Any) -> str:
    """The page of one of the templates, which extend the skeleton ``page.html.j2``, with further values of its own.

    `contents` are ids of the parts that the navigation leads to, and their titles.
    """
    environment = Environment(
        loader=PackageLoader("flashsim.studies.presentation"),
        autoescape=select_autoescape(["html", "j2"]),
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    environment.filters |= {"inline": Markup, "cards": cards, "filled": filled, "numeric": numeric, "texts": texts}
    common = {"title": title, "contents": contents, "provenance": json.dumps(origin, indent=2), "limits": _LIMITS[1:]}
    text = environment.get_template(template).render(common | values)
    return text.encode("utf-8", "replace").decode()  # names of files may hold what is no character


def cards(table: pd.DataFrame) -> str:
    """The class of a table that is too wide for some pages, where its rows become cards; nothing if it fits the narrowest.

    Examples
    --------
    >>> from flashsim.studies.presentation.tables import Table
    >>> cards(Table(["join", "s"], [["bnl", 1.5]]))
    ''
    >>> cards(Table([f"column {number}" for number in range(20)], [[1e9] * 20]))
    'cards-9999'
    """
    width, rows, numbers = 0.0, texts(table), numeric(table)
    for index in filled(table):
        entries, number = [row[index] for row in rows], numbers[index]
        widest = max(map(len, entries), default=0)
        words = [word for entry in (str(table.columns[index]), *(() if number else entries)) for word in entry.split()]
        wide = max([widest if number else min(widest, _WRAPPED), *map(len, words)])
        width += _CHARACTER * wide + _MARGINS
    least, *limits = _LIMITS
    return f"cards-{next(limit for limit in limits if width <= limit or limit == limits[-1])}" if width > least else ""

"""A part of a report: words, tables and pictures."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from flashsim.studies.presentation.tables import write_csv


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
            from flashsim.studies.presentation.plots import svg  # its libraries take a while to load

            pictures = {name: picture if isinstance(picture, str) else svg(picture) for name, picture in self.pictures.items()}
            object.__setattr__(self, "pictures", pictures)

    @property
    def id(self) -> str:
        return _plain(self.title.lower())

    def scoped(self, prefix: str) -> Section:
        """The section with pictures whose ids are their own: several stand in one page."""
        references = re.compile(r'\bid="|href="#|url\(#')
        pictures = {name: references.sub(rf"\g<0>{prefix}{_plain(name)}-", picture) for name, picture in self.pictures.items()}
        return replace(self, pictures=pictures)

    def write_files(self, folder: Path, prefix: str = "") -> None:
        """Write the tables that have a title, and the pictures."""
        for table in self.tables:
            if table.attrs.get("title"):
                write_csv(table, folder / f"{prefix}{table.attrs['title']}.csv")
        for name, picture in self.pictures.items():
            (folder / f"{prefix}{name}.svg").write_text(picture, encoding="utf-8")


def _plain(name: str) -> str:
    return re.sub(r"\W+", "-", name).strip("-")

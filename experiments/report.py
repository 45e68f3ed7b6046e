"""The report of a reproduction: one HTML page that needs nothing else, and every table as CSV and picture as SVG beside it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from experiments.papers import Settings
from experiments.reproduction import Reproduced, as_dict, summary
from experiments.tables import Table


def write_report(folder: Path, done: Sequence[Reproduced], settings: Settings) -> None:
    """Fill a folder with ``report.html``, the tables and the pictures."""
    (folder / "report.html").write_text(html(done, settings), encoding="utf-8")
    for one in done:
        prefix = f"{one.paper.name}-"
        _claims_table(one, settings).write_csv(folder / f"{prefix}claims.csv")
        for section in one.sections:
            for table in section.tables:
                table.write_csv(folder / f"{prefix}{table.title}.csv")
            for name, picture in section.pictures.items():
                (folder / f"{prefix}{name}.svg").write_text(picture, encoding="utf-8")


def _claims_table(one: Reproduced, settings: Settings) -> Table:
    rows = [
        [each.claim.name, each.verdict_at(settings.scale), each.published, each.measured, each.claim.tolerance, each.note]
        for each in one.judgements
    ]
    return Table(["claim", "verdict", "published", "measured", "tolerance", "note"], rows)


def html(done: Sequence[Reproduced], settings: Settings) -> str:
    """The page."""
    shown = [{"paper": one.paper, "summary": summary(one), "judgements": one.judgements, "sections": one.sections} for one in done]
    origin = json.dumps(as_dict(done, settings)["provenance"], indent=2)
    return page("report.html.j2", papers=shown, scale=settings.scale, provenance=origin)


def page(template: str, **values: Any) -> str:
    """A page from one of the templates; what a template calls ``inline`` lets a picture stand in it."""
    environment = Environment(
        loader=PackageLoader("experiments"), autoescape=select_autoescape(["html", "j2"]), undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template(template).render(inline=Markup, **values)

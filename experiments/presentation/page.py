"""Pages of HTML from templates."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup


def page(template: str, **values: Any) -> str:
    """A page from one of the templates; what a template calls ``inline`` lets a picture stand in it."""
    environment = Environment(
        loader=PackageLoader("experiments.presentation"),
        autoescape=select_autoescape(["html", "j2"]),
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    return environment.get_template(template).render(inline=Markup, **values)

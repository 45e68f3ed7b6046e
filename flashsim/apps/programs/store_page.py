"""The verdict on a store under power cuts, and the page of all of them."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from flashsim.apps.programs.store_survey import MENDS, is_broken

#: Kinds of failure in words, the worst first.
_WORDS = {
    "lost": "acknowledged transactions are lost",
    "damaged": "acknowledged data is damaged",
    "closed": "the store does not open",
    "closed_empty": "the store does not open if it was cut before its first commit",
    "torn": "a part of an unacknowledged transaction is visible",
}


def broken_kinds(row: Mapping[str, Any]) -> list[str]:
    """Kinds of failure that a setting's documents exclude, the worst first."""
    return [kind for kind in _WORDS if kind in row.get("failing", ()) and is_broken(kind, row["promises"])]


def verdict(row: Mapping[str, Any]) -> str:
    """Verdict on a setting of a store, in a sentence without an end."""
    if row["status"] != "tried":
        return str(row["status"]) + (f": {row['reason']}" if "reason" in row else "")
    if not row["failing"]:
        return "every image passes"
    broken = broken_kinds(row)
    rest = [words for kind, words in _WORDS.items() if kind in row["failing"] and kind not in broken]
    parts = {"against its documents": [_WORDS[kind] for kind in broken], "not excluded by its documents": rest}
    return "; ".join(f"{words}: {', '.join(kinds)}" for words, kinds in parts.items() if kinds)


def _number(row: Mapping[str, Any], *kinds: str) -> str:
    """Images that fail in some ways, and whether the documents leave that open."""
    number = sum(row["failing"].get(kind, 0) for kind in kinds)
    return f"{number:,}" + " (not excluded)" * (number > 0 and not set(kinds) & set(broken_kinds(row))) if number else "none"


def page(rows: Sequence[Mapping[str, Any]], provenance: Mapping[str, Any]) -> str:
    """The page, in Markdown."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # takes a while to load

    environment = Environment(
        loader=PackageLoader("flashsim.apps.programs"), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
    )
    tried = [row for row in rows if row["status"] == "tried"]
    stores = {name: [row for row in tried if row["store"] == name] for name in dict.fromkeys(row["store"] for row in tried)}
    with Path(__file__).with_name("embedded_stores_on_ext4.toml").open("rb") as file:
        ext4 = tomllib.load(file)
    there = {tuple(each[name] for name in ("store", "setting", "version")): each for each in ext4.pop("tried")}
    about: dict[str, Any] = {"rows": rows, "tried": tried, "stores": stores, "words": _WORDS, "mends": MENDS, "ext4": ext4, "there": there}
    about |= {"verdict": verdict, "broken_kinds": broken_kinds, "number": _number}
    about |= {name: provenance[name] for name in ("parameters", "seed", "flashsim", "created")}
    return environment.get_template("store_page.md.j2").render(about) + "\n"

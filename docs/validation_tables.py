"""Tables of the page on flash drives of today, from the JSON of `flashsim validate ssd`.

python docs/validation_tables.py ssd.json load.json reads.json

Each file is one of the command's outputs: without options, with `--under-load`, and with `--reads`.  Its tables stand on the page between
a line `<!-- table: NAME -->` and the next line `<!-- end -->`, and are replaced there.
"""

import json
import re
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent / "explanation" / "ssd_validation.md"
#: Measures under load, in the order of columns, and their headings.
LOAD = {"achieved_per_s": "achieved"} | {
    f"{operation}_{level}_us": f"{operation} {level}" for operation in ("read", "write") for level in ("p50", "p99", "p99.9")
}
READS = {"iops": "requests per second", "p50_us": "p50, us", "p99_us": "p99, us"}


def tables(answer: dict[str, Any]) -> dict[str, str]:
    """Tables that one JSON file of the command gives, by name."""
    if "numbers" in answer:
        return {"published": _published(answer["numbers"])}
    if "drives" in answer:
        return {"factors": _factors(answer["drives"]), "rows": _rows(answer["rows"], ("drive", "background_per_s"), LOAD)}
    return {"reads": _rows(answer["rows"], ("queue_depth",), READS)}


def replaced(page: str, name: str, table: str) -> str:
    """The page with this table in its place.

    Raises
    ------
    ValueError
        The page has no such place, or several.
    """
    pattern = rf"(<!-- table: {name} -->\n)(?:.*?\n)??(<!-- end -->)"
    page, places = re.subn(pattern, lambda place: f"{place[1]}\n{table}\n{place[2]}", page, flags=re.DOTALL)
    if places != 1:
        raise ValueError(f"{PAGE.name} has {places} places for the table {name}")
    return page


def _published(numbers: list[dict[str, Any]]) -> str:
    rows = [("claim", "drive", "at", "published", "simulated", "difference", "inside", "rests on")]
    for each in numbers:
        far = each["simulated"] > 10 * each["published"]
        difference = "no bound" if far else f"{each['simulated'] / each['published'] - 1:+.1%}"
        inside = "yes" if each["inside"] else "**no**"
        at, values = each["at"] or "", (f"{each['published']:,}", "grows" if far else _digits(each["simulated"]))
        rows.append((each["claim"], each["drive"], str(at), *values, difference, inside, each["rests on"]))
    return _markdown(rows)


def _factors(drives: list[dict[str, Any]]) -> str:
    factors: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for each in drives:
        for of, value in (("preset", each["factor"]), ("null", each["null_factor"])):
            factors[each["drive"], of][each["measure"]] = value
    rows = [("drive", "of", *LOAD.values())]
    rows += [(*key, *(f"{values[measure]:.2f}" for measure in LOAD)) for key, values in factors.items()]
    return _markdown(rows)


def _rows(rows: list[dict[str, Any]], keys: tuple[str, ...], measures: dict[str, str]) -> str:
    """A line per row of the measurements: simulated / measured."""
    cells: dict[tuple[Any, ...], dict[str, str]] = defaultdict(dict)
    for each in rows:
        key = tuple(f"{each[name]:,.0f}" if isinstance(each[name], float) else str(each[name]) for name in keys)
        cells[key][each["measure"]] = f"{each['simulated']:,.0f} / {each['measured']:,.0f}"
    heading = tuple(name.replace("_per_s", ", per s").replace("_", " ") for name in keys)
    return _markdown([(*heading, *measures.values()), *((*key, *(cell[name] for name in measures)) for key, cell in cells.items())])


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 200 else f"{value:.1f}" if value >= 10 else f"{value:.3f}"


def _markdown(rows: Sequence[tuple[str, ...]]) -> str:
    heading, *others = ["| " + " | ".join(row) + " |\n" for row in rows]
    return "".join([heading, "|---" * len(rows[0]) + "|\n", *others])


def main(files: list[str]) -> None:
    """Replace the tables that these files give, all or none."""
    page = PAGE.read_text()
    for file in files:
        for name, table in tables(json.loads(Path(file).read_text())).items():
            page = replaced(page, name, table)
    PAGE.write_text(page)


if __name__ == "__main__":
    main(sys.argv[1:])

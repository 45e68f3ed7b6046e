"""Pages of the site that are made when it is built: of notebooks, commands, families, and pictures of papers' published numbers."""

from __future__ import annotations

import base64
import json
import re
import shutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from typing import Any

import pandas as pd
import typer
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from typer.core import TyperGroup

from flashsim.command_line import app
from flashsim.core.families import declarations
from flashsim.core.source_files import source_tree
from flashsim.experiments.presentation.plots import panels, svg
from flashsim.testing import CONTRACTS

#: Longer than any fence within an output or a help text.
FENCE = "`" * 8
#: Pictures that an output may hold, and the suffixes of their files.
PICTURES = {"image/png": ".png", "image/svg+xml": ".svg"}


def write_pages(notebooks: Path, folder: Path) -> None:
    """Make the folder anew: a page for each notebook, a file for each picture, and ``cards.md``, which the gallery includes."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    cards = []
    for path in sorted(notebooks.glob("*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        page = [_cell(cell, folder, f"{path.stem}-{number:02d}") for number, cell in enumerate(notebook["cells"])]
        (folder / f"{path.stem}.md").write_text("\n\n".join(page) + "\n", encoding="utf-8")
        cards.append(_card(path.stem, notebook, folder))
    (folder / "cards.md").write_text("::::{container} gallery\n" + "\n".join(cards) + "\n::::\n", encoding="utf-8")


def _card(name: str, notebook: dict[str, Any], folder: Path) -> str:
    """The first picture of a notebook, its title as a link to its page, and its summary."""
    title = "".join(notebook["cells"][0]["source"]).partition("\n")[0].removeprefix("# ")
    pictures = sorted(path for path in folder.glob(f"{name}-*") if path.suffix in PICTURES.values())
    picture = f"![](gallery/{pictures[0].name})" if pictures else ""  # no words: the title stands below
    return f":::{{container}} card\n{picture}\n\n[{title}](gallery/{name}.md)\n\n{notebook['metadata'].get('summary', '')}\n:::"


def _cell(cell: dict[str, Any], folder: Path, name: str) -> str:
    """A cell as Markdown; links into the documentation lead to its pages."""
    source = "".join(cell["source"])
    if cell["cell_type"] != "code":
        return source.replace("](../docs/", "](../")
    shown = [_output(output, cell, folder, f"{name}-{place:02d}") for place, output in enumerate(cell["outputs"])]
    return "\n\n".join([_block("python", source), *shown])


def _output(output: dict[str, Any], cell: dict[str, Any], folder: Path, name: str) -> str:
    """One output of a cell as Markdown: a picture, a table or text."""
    data = {kind: "".join(text) for kind, text in output.get("data", {"text/plain": output.get("text", "")}).items()}
    for kind in PICTURES.keys() & data.keys():
        file = folder / (name + PICTURES[kind])
        file.write_bytes(base64.b64decode(data[kind]) if kind == "image/png" else data[kind].encode())
        return f"![{cell['metadata'].get('alt', '')}]({file.name})"
    if "text/html" in data:  # a wide table is scrolled in its box
        if drawing := re.search(r"<svg.*?</svg>", data["text/html"], re.DOTALL):
            (folder / f"{name}.svg").write_text(drawing[0], encoding="utf-8")  # for the card
        return _block("{raw} html", f'<div class="table-wrapper output">{data["text/html"]}</div>')
    return _block("{code-block} text\n:class: output", re.sub("\x1b\\[[\\d;]*m", "", data["text/plain"]))


def _block(kind: str, text: str) -> str:
    return f"{FENCE}{kind}\n{text.rstrip()}\n{FENCE}"


#: Options in a text, which typographic dashes would spoil.
_OPTION = re.compile(r"(--[a-z][\w-]*)")


def write_commands(file: Path) -> None:
    """Write a section for each command, its arguments and options with an anchor each."""
    group = typer.main.get_command(app)
    file.parent.mkdir(exist_ok=True)
    file.write_text("\n\n".join(_sections(group, group.context_class(group, info_name="flashsim"), 2)) + "\n", encoding="utf-8")


def _sections(command: Any, context: Any, level: int) -> Iterator[str]:
    command.get_help(context)  # puts the names of members into the texts of options
    yield f"{'#' * level} {context.command_path}"
    yield _block("text", " ".join(command.get_usage(context).removeprefix("Usage: ").split()))
    yield from map(_paragraph, (command.help or "").split("\n\n"))
    yield _block(f"{{program}} {context.command_path}", "")
    for parameter in command.get_params(context):
        if (record := parameter.get_help_record(context)) and record[0] != "--help":
            name = record[0].partition(" <")[0] if parameter.param_type_name == "argument" else record[0]
            yield _block(f"{{option}} {name}", _text(record[1]))
    if isinstance(command, TyperGroup):
        for name in command.list_commands(context):
            _, member, _ = command.resolve_command(context, [name])
            yield from _sections(member, member.context_class(member, info_name=name, parent=context), level + 1)


def _paragraph(text: str) -> str:
    r"""A paragraph of a help text; the mark ``\b`` stands before what is not to be wrapped."""
    return _block("sh", dedent(text.removeprefix("\b\n"))) if text.startswith("\b") else _text(text)


def _text(words: str) -> str:
    """Words with options as code, and no sign that means something to Markdown."""
    parts = _OPTION.split(" ".join(words.split()))
    return "".join(f"`{part}`" if place % 2 else re.sub(r"([^\w\s.,:;%'\"/()=-])", r"\\\1", part) for place, part in enumerate(parts))


def write_families(file: Path) -> None:
    """Write a section for each family, in the order of what they are called."""
    sections = [_section(getattr(import_module(module), name), f"{module}.{protocol}") for _, module, name, protocol in declarations()]
    file.parent.mkdir(exist_ok=True)
    file.write_text("\n\n".join(sorted(sections)) + "\n", encoding="utf-8")


def _section(family: Any, protocol: str) -> str:
    room = family.package.rpartition(".")[2]
    tests = f", tested by {{class}}`~flashsim.testing.contracts.{CONTRACTS[room].replace(':', '.')}`" if room in CONTRACTS else ""
    rows = [f"| {_link(family.package, name)} | {_summary(family.load(name))} |" for name in family.names()]
    title = family.kind[0].upper() + family.kind[1:]
    lead = f"In `{family.package}`; contract {{class}}`~{protocol}`{tests}."
    return "\n".join([f"## {title}", "", lead, "", "| name | description |", "|---|---|", *rows])


def _link(package: str, name: str) -> str:
    module = f"{package}.{name.replace('-', '_')}"
    return f"{{mod}}`{name} <{module}>`" if module in source_tree().sources else f"`{name}`"


def _summary(member: Any) -> str:
    """The first paragraph of its docstring, or its title."""
    text = (member.__doc__ or getattr(member, "TITLE", "")).strip().partition("\n\n")[0]
    return " ".join(text.split()).replace("|", "\\|")


#: A row of the page: numbers inside, and published ones.
_ROW = re.compile(r"^\| [\w.-]+ \|[^|]*\| (\d+) of (\d+) \|", re.MULTILINE)
#: Ratios that are drawn where they are; what lies beyond stands at the edge.
EDGES = (0.4, 2.5)
_TICKS = (0.4, 0.5, 0.67, 0.8, 1, 1.25, 1.5, 2, 2.5)
_INSIDE: dict[str, Any] = {"marker": "o", "color": "#1f4e79", "linestyle": "", "markersize": 4}
_OUTSIDE: dict[str, Any] = {"marker": "D", "color": "#b3261e", "linestyle": "", "markersize": 4}
_BAND: dict[str, Any] = {"color": "#d9d9d9", "linewidth": 0}


def write_pictures(reference: Path, folder: Path) -> None:
    """Write a picture of each paper on the page of claims, and Markdown that shows it, for other pages to include."""
    folder.mkdir(exist_ok=True)
    beside = dict(list(pd.read_csv(reference / "claims.csv").groupby("paper")))
    page = (reference / "claims.md").read_text(encoding="utf-8")
    for paper, text in re.findall(r"^## (\w+)$(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL):
        inside, published = (sum(map(int, each)) for each in zip(*_ROW.findall(text), strict=True))
        words = f"Of {published} published numbers of {paper} from which no parameter was solved, {inside} are inside their tolerance"
        (folder / f"numbers-{paper}.svg").write_text(_ratios(beside[paper]), encoding="utf-8")
        lead = "Simulated results relative to the published numbers: 1 means equal."
        shown = f"{lead}\n\n![{words}](../reference/generated/numbers-{paper}.svg)\n"
        (folder / f"numbers-{paper}.md").write_text(shown, encoding="utf-8")


def _ratios(cells: pd.DataFrame) -> str:
    """A line a number, in blocks by claim."""
    blocks = list(cells.groupby("claim", sort=False))
    heights = [max(0.3, 0.085 * len(block)) for _, block in blocks]
    with panels(0.9 + sum(heights)) as (figure, axes):
        top, places = 0.0, {}
        for (claim, block), height in zip(blocks, heights, strict=True):
            step = height / len(block)
            for number, (_, cell) in enumerate(block.iterrows()):
                _draw(axes, cell, top + (number + 0.5) * step, step)
            places[top + height / 2] = claim
            top += height
            axes.axhline(top, color="#eeeeee", linewidth=0.8, zorder=0)
        axes.axvline(1, color="#555555", linewidth=0.9, linestyle="--")
        axes.set(xscale="log", xlim=EDGES, ylim=(top, 0), xlabel="simulated / published number")
        axes.set_xticks(_TICKS, [f"{tick:g}" for tick in _TICKS])
        axes.set_xticks([], minor=True)
        more = [Line2D([], [], label="outside (published, simulated)", **_OUTSIDE)] * (not cells.inside.all())
        more += [Line2D([], [], label="not counted: used for a fit, or derived", markerfacecolor="white", **_INSIDE)]
        axes.set_yticks(list(places), list(places.values()))
        axes.tick_params(axis="y", length=0)
        handles = [Line2D([], [], label="inside", **_INSIDE), Patch(label="tolerance", **_BAND), *more]
        figure.legend(handles=handles, frameon=False, ncols=2, fontsize=8, loc="outside upper center")
    return svg(figure)


def _draw(axes: Axes, cell: Any, y: float, step: float) -> None:
    """A number's tolerance, and ours; of one outside both numbers."""
    width = cell.limit / abs(cell.published) if cell.points and cell.published else cell.limit
    left, right = max(1 - width, EDGES[0]), min(1 + width, EDGES[1])
    axes.barh(y, right - left, 0.9 * step, left=left, zorder=0, **_BAND)
    ratio = cell.ours / cell.published if cell.published else 1.0
    x, look = min(max(ratio, EDGES[0]), EDGES[1]), _INSIDE if cell.inside else _OUTSIDE
    axes.plot(x, y, clip_on=False, markerfacecolor=look["color"] if cell.counts else "white", **look)
    if not cell.inside:
        place = {"xytext": (-5, 0), "ha": "right"} if ratio > 1.8 else {"xytext": (5, 0), "ha": "left"}
        words = f"{cell.published:.4g}, {cell.ours:.3g}"
        axes.annotate(words, (x, y), textcoords="offset points", fontsize=6.5, va="center", color=_OUTSIDE["color"], **place)

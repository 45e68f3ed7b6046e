"""How Sphinx builds the documentation."""

import __future__

import os
import re
import shutil
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

os.environ["NUMBA_DISABLE_JIT"] = "1"  # kernels are then plain functions, whose signatures and docstrings can be read
ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]


def _code_with_plain_annotations(loader: SourceFileLoader, module: str) -> Any:
    path = loader.get_filename(module)
    if not Path(path).is_relative_to(ROOT) or ".venv" in path:
        return _code(loader, module)
    return compile(loader.get_data(path), path, "exec", __future__.annotations.compiler_flag, dont_inherit=True)


# Signatures then show annotations as the source writes them: `Integers` rather than an array of its types.
_code, SourceFileLoader.get_code = SourceFileLoader.get_code, _code_with_plain_annotations

from docutils import nodes  # noqa: E402
from latex2mathml.converter import convert  # noqa: E402
from pages import write_commands, write_families, write_pages, write_pictures  # noqa: E402

import flashsim  # noqa: E402

sys.modules["fs"] = flashsim  # pages document functions under the names that users type

# Pages of modules that are no more would otherwise stay.
shutil.rmtree(Path(__file__).parent / "reference" / "generated", ignore_errors=True)
write_pages(ROOT / "notebooks", Path(__file__).parent / "gallery")
GENERATED = Path(__file__).parent / "reference" / "generated"
write_commands(GENERATED / "commands.md")
write_families(GENERATED / "families.md")
write_pictures(GENERATED.parent, GENERATED)

project = "flashsim"
author = "The flashsim authors"
copyright = "The flashsim authors, Apache License 2.0"
release = version = flashsim.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "gallery/cards.md", "reference/generated/*.md"]  # what other pages include
suppress_warnings = ["toc.glob", "toc.empty_glob"]
# Docstrings write the size of a relation as the field does; to reStructuredText it is a substitution.
rst_epilog = "\n".join(f".. |{name}| replace:: \\|{name}\\|" for name in ("R", "S"))
templates_path = ["_templates"]
html_theme = "furo"
html_show_search_summary = False  # it would be fetched, which a page that was opened as a file may not
html_title = "flashsim"
html_static_path, html_css_files, html_js_files = ["_static"], ["keyboard.css", "gallery.css", "tables.css"], ["keyboard.js"]
html_math_renderer = "mathml"  # browsers show it by themselves, without a network

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_default_options = {"ignore-module-all": True}  # a name is explained where it is defined, wherever it is passed on
autodoc_typehints = "signature"
autodoc_type_aliases = {name: name for name in ("Integers", "Requests", "Completions", "Commands")}
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False


def setup(app: Any) -> None:
    """Have the sidebar unfold along the way to each page alone: whole, on each of 900 pages, it takes longer than all that they tell."""
    if app.tags.has("guides"):  # pages that people write, without those of each module, which take most of the time
        app.config.autosummary_generate = False
        app.connect("source-read", _without_modules)
    app.connect("doctree-read", _colour_verdicts)
    app.connect("html-page-context", _fold, priority=400)  # before the theme makes the sidebar
    app.connect("autodoc-process-docstring", _without_types, priority=400)  # before napoleon
    app.add_html_math_renderer("mathml", inline_renderers=(_formula("inline"), None), block_renderers=(_formula("block"), None))


def _without_modules(app: Any, name: str, source: list[str]) -> None:
    source[0] = re.sub(r"^```{eval-rst}\n\.\. autosummary::.*?^```\n", "", source[0], flags=re.MULTILINE | re.DOTALL)


def _formula(display: str) -> Any:
    def visit(writer: Any, node: nodes.Element) -> None:
        formula = convert(node.astext(), display=display)
        # A long one is scrolled in its box, not with the page; a box that scrolls takes the focus of a keyboard.
        writer.body.append(formula if display == "inline" else f'<div style="overflow-x: auto" tabindex="0">{formula}</div>')
        raise nodes.SkipNode

    return visit


def _without_types(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Nothing before a colon of an attribute's docstring is its type, as napoleon has it: annotations tell types."""
    if what in ("attribute", "data", "property") and lines and ":" in lines[0]:
        lines[0] = f": {lines[0]}"


def _colour_verdicts(app: Any, doctree: nodes.document) -> None:
    """Verdicts in tables have a class each, and with it a colour."""
    for entry in doctree.findall(nodes.entry):
        if entry.astext() in ("reproduced", "fitted", "consistent", "differs", "not attempted"):
            entry["classes"] += ["verdict", f"verdict-{entry.astext().replace(' ', '-')}"]


def _fold(app: Any, name: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    if "toctree" in context:
        whole = context["toctree"]
        context["toctree"] = lambda **options: whole(**options | {"collapse": True})

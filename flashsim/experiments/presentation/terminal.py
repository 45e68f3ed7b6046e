"""The output of commands: lines, tables and explanations, fitted to the width of the terminal."""

import os
import re
import sys
from dataclasses import dataclass, replace

import pandas as pd

from flashsim.core.errors import printable
from flashsim.experiments.presentation.tables import as_text, wrap_text

#: One thing where a sentence has the plural, with the verb behind it; nothing in the name of a file.
_ONE = re.compile(
    r"(?<![\w.,/-])1 (?:(call|claim|client|command|connection|cut|drive|effect|erase|event|exercise|fetch(?=e)|file|frame|image|instance|"
    r"line|outcome|page|plan|point|program|read|reference|request|row|run|seek|step|strand|submission|transaction|write|zone|miss(?=e)|"
    r"process(?=e))e?s|(histor|quer)ies)\b(?![/-]|\.\w)( (?:are|were|have|fail|arrive|do)\b)?"
)
_VERBS = {" are": " is", " were": " was", " have": " has", " do": " does"}


def singular(text: str) -> str:
    """A text in which one of something is no plural.

    Examples
    --------
    >>> singular("1 requests were late, 21 requests in 1.1 pages")
    '1 request was late, 21 requests in 1.1 pages'
    """

    def one(match: re.Match[str]) -> str:
        verb = match[3] or ""
        return f"1 {match[1] or f'{match[2]}y'}{_VERBS.get(verb, f'{verb}s' if verb else '')}"

    return _ONE.sub(one, text)


#: Explanations are no wider, and tables no wider than the second: a longer line is hard to follow.
_READABLE, _MOST = 110, 200
#: The width of a terminal that does not tell.
_USUAL = 80


def width() -> int | None:
    """Characters a line: ``$COLUMNS``, or what the terminal tells, at most 200; None for a pipe or a file, where lines have any length."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return min(int(columns), _MOST)
    if not sys.stdout.isatty():
        return None
    return min(os.get_terminal_size(sys.stdout.fileno()).columns or _USUAL, _MOST)


@dataclass(frozen=True)
class Explanation:
    """A text in lines that are read well; `indent` begins all but the first."""

    text: str
    indent: str = ""


Part = str | pd.DataFrame | Explanation


def next_steps(*steps: str) -> Explanation:
    """The last line of a screen: the commands, options or pages that lead on.

    Examples
    --------
    >>> next_steps("--why explains the latencies", "--out-dir DIR draws them").text
    'Next: --why explains the latencies; --out-dir DIR draws them.'
    """
    return Explanation(f"Next: {'; '.join(steps)}.", " " * len("Next: "))


def say(*parts: Part) -> None:
    """Print tables, explanations, and lines; what follows a line's end when it is wrapped stands four further in."""
    for part in parts:
        print(fit_to_width(in_singular(part), width()))
    sys.stdout.flush()


def in_singular(part: Part) -> Part:
    """A part in which one of something is no plural."""
    if isinstance(part, Explanation):
        return replace(part, text=singular(part.text))
    return singular(part) if isinstance(part, str) else part


def fit_to_width(part: Part, columns: int | None) -> str:
    """A table or a text in lines of at most `columns` characters, as far as words and numbers allow.

    A text is one line, and what is in it no control character; an empty line follows if it ends one.

    Examples
    --------
    >>> print(fit_to_width("a drive that is filled", 15))
    a drive that is
        filled
    """
    if isinstance(part, pd.DataFrame):
        return as_text(part, columns)
    if isinstance(part, Explanation):
        return wrap_text(printable(part.text), min(columns or _READABLE, _READABLE), part.indent)
    line = printable(part.removesuffix("\n"))
    own = line[: len(line) - len(line.lstrip())]
    return wrap_text(line, columns, own + "    ") + part[len(line) :]

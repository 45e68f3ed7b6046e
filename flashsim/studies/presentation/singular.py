"""Sentences that count things, in which one of something is no plural."""

import re

#: One thing where a sentence has the plural, with the verb behind it; nothing in the name of a file.
_ONE = re.compile(
    r"(?<![\w.,/-])1 (?:(call|client|command|connection|cut|drive|effect|erase|event|exercise|fetch(?=e)|file|frame|image|instance|line|"
    r"outcome|page|plan|point|program|read|reference|request|row|run|seek|step|strand|submission|transaction|write|zone|miss(?=e)|"
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

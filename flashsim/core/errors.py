"""Every error that flashsim raises on purpose, in one hierarchy.

A message names the parameter, its value and the bound that it breaks.  The command line prints that one line and exits with code 2.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Collection, Iterable
from typing import Any, Self

_LONGEST, LONGEST_WORD = 200, 400  #: The longest value, and the longest word of any text, that a message shows whole.
#: Exit code of a command that could not print all, as shells have it of a program whose reader has gone.
UNPRINTED = 141


def printable(text: str) -> str:
    """A text from elsewhere, as it may reach a terminal: in one line, without control characters, and with ? for what is no character."""
    text = text.encode("utf-8", "replace").decode()
    return "".join(character if character.isprintable() else " " for character in text)


def shorten(text: str, most: int = _LONGEST) -> str:
    """A text that a message can hold: of a longer one its beginning and end, and how long it is.

    >>> shorten("9" * 5000, 20)
    '9999999999...9999999999 (5,000 characters)'
    """
    half = most // 2
    return text if len(text) <= most else f"{text[:half]}...{text[-half:]} ({len(text):,} characters)"


def in_one_line(problem: BaseException) -> str:
    """Text of somebody else's error for a message.

    >>> in_one_line(ValueError("not  a number"))
    'ValueError: not a number'
    """
    return shorten(f"{type(problem).__name__}: {' '.join(str(problem).split()) or 'no reason given'}")


class Wording(str):
    """A text that names options, as the command line has them; `python` has parameters of functions in their place."""

    python: str

    def __new__(cls, command: str, python: str) -> Self:
        text = super().__new__(cls, command)
        text.python = python
        return text

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return str(self), self.python

    def __add__(self, other: str) -> Wording:
        return Wording(str(self) + str(other), self.python + python_wording(other))

    def __radd__(self, other: str) -> Wording:
        return Wording(str(other) + str(self), python_wording(other) + self.python)


def option(name: str, python: str = "") -> Wording:
    """An option that a text names; `python` is what stands in its place there, by default the parameter of that name.

    Examples
    --------
    >>> advice = "read a part of it, with " + option("page-size") + " 4KiB"
    >>> advice, python_wording(advice)
    ('read a part of it, with --page-size 4KiB', 'read a part of it, with page_size 4KiB')
    """
    return Wording(f"--{name}", python or name.replace("-", "_"))


#: Options without a value, which are switched on in Python.
ALLOW_WRITE, FORCE, WRAP = option("allow-write", "allow_write=True"), option("force", "force=True"), option("wrap", "wrap=True")


def python_wording(text: str) -> str:
    """A text with parameters of functions in the place of the options that it names."""
    return text.python if isinstance(text, Wording) else text


def _in_one_line(message: str) -> str:
    return re.sub(rf"\S{{{LONGEST_WORD + 1},}}", lambda word: shorten(word[0], LONGEST_WORD), printable(message))


class FlashsimError(Exception):
    """Anything that flashsim refuses to do; the message is one line for people, whatever names and values it holds."""

    def __init__(self, message: object = "", *more: object) -> None:
        words = _in_one_line(str(message))
        super().__init__(Wording(words, _in_one_line(message.python)) if isinstance(message, Wording) else words, *more)

    @property
    def message(self) -> str:
        """The message, which may be a `Wording`."""
        return self.args[0] if self.args else ""

    def reword(self) -> None:
        """Name parameters of functions in the place of options."""
        self.args = (python_wording(self.message), *self.args[1:])

    def _render_traceback_(self) -> list[str]:
        """The lines that IPython and Jupyter show in the place of a traceback."""
        return [f"{type(self).__name__}: {self.message}"]

    def __reduce__(self) -> tuple[Any, ...]:
        return _remade, (type(self), self.args), vars(self)


def _remade(kind: type[FlashsimError], args: tuple[Any, ...]) -> FlashsimError:
    return kind.__new__(kind, *args)


class FlashsimWarning(UserWarning):
    """Something that a user should know of a result that flashsim gives all the same; the message is one line for people."""


class InvalidParameterError(FlashsimError, ValueError):
    """A value outside the bounds of its parameter."""

    def __init__(self, parameter: str, value: object, bound: str) -> None:
        super().__init__(parameter + f": {shorten(str(value))}, but " + bound)
        self.parameter = parameter
        self.value = value
        self.bound = bound


def check_least(least: int, **values: float) -> None:
    """Refuse values below a bound, infinite ones, and those that are no numbers."""
    for name, value in values.items():
        if not least <= value < math.inf:
            raise InvalidParameterError(name, value, f"it must be at least {least}")


class UnknownNameError(FlashsimError, LookupError):
    """A name that no member, preset or column carries; close names are suggested."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.name = str(name)
        name, choices = shorten(self.name), sorted(known)
        lower = {each.lower(): each for each in choices}
        close = [lower[each] for each in difflib.get_close_matches(name.lower(), lower, n=3, cutoff=0.5)]
        close = close or [each for each in choices if len(name) > 2 and name.lower() in each.lower()][:5]
        hint = f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(choices) or 'none'}"
        super().__init__(f"{kind}: '{name}' is unknown; {hint}")


class UnknownAttributeError(FlashsimError, AttributeError):
    """An attribute that an object does not have; the message names what does the same, or close names."""


def check_known(kind: str, name: str, known: Collection[str]) -> None:
    """Refuse a name that is not among those known."""
    if name not in known:
        raise UnknownNameError(kind, name, known)


class DamagedFileError(FlashsimError):
    """A file that is truncated, corrupt, or not of the format it was taken for."""


class MissingFileError(FlashsimError):
    """A file that does not exist or cannot be opened."""


class SchemaError(FlashsimError):
    """Columns that do not exist, differ in type, or cannot be joined."""


class CapacityError(FlashsimError):
    """A device, file or memory too small for what it shall hold."""


class RefusedError(FlashsimError):
    """An action that needs an explicit permission, such as overwriting a file."""


class StandardOutputError(FlashsimError):
    """Standard output takes no more: its reader has gone, or it is full or closed.

    `status` is the command's exit code, `written` the options whose files were written before.
    """

    def __init__(self, reason: str, status: int = 0, written: Iterable[str] = ()) -> None:
        files = " and ".join(written)
        super().__init__(f"standard output: {reason}{f'; what {files} named is written' if files else ''}")
        self.reason, self.status = reason, status or UNPRINTED


class ReadOnlyDeviceError(FlashsimError):
    """A write to a device that takes no more writes."""


class DeadlockError(FlashsimError):
    """Strands of control that wait for each other; the message says who waits for whom."""


class MissingExtraError(FlashsimError):
    """An optional dependency that is not installed; the message says how to install it."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} is not installed; install it with: pip install 'flashsim[{extra}]'")

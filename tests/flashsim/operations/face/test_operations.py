"""Each operation is declared once: its function, its command and both help texts have the same parameters."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import flashsim as fs
from flashsim.command_line import app
from flashsim.command_table import COMMANDS
from flashsim.core.errors import FlashsimError, option
from flashsim.operations.command import command
from flashsim.operations.fields import Count, Duration, Field, Flag, Name, Size
from flashsim.operations.operation import fields, operation, origin
from flashsim.operations.outcome import Listing
from tests.cases import with_each
from tests.commands import Run

#: The words of each command.
PATHS = [f"{group} {name}".strip() for group, place in COMMANDS.items() for name in ([""] if isinstance(place, str) else place)]
#: Commands by their names in Python.
OPERATIONS = {re.sub("[ -]", "_", path): path for path in PATHS}


def found(words: str) -> Any:
    """A command."""
    part: Any = get_command(app)
    for word in words.split():
        part = part.resolve_command(None, [word])[1]
    return part


@with_each("name", OPERATIONS)
def test_the_command_takes_what_the_function_takes(name: str) -> None:
    function = getattr(fs, name)
    declared = fields(function.__wrapped__)
    parameters = {each.name for each in inspect.signature(function).parameters.values() if each.kind is not each.VAR_KEYWORD}
    assert set(declared) == parameters, "a parameter without a field"
    taken = {each.name: each for each in found(OPERATIONS[name]).params}
    assert {each for each, field in declared.items() if not field.constant} == {each for each in taken if not each.endswith("_")} - {
        "help",
        "help_all",
    } - ({"force"} - set(declared))
    for each, field in declared.items():
        assert field.help in " ".join(str(getattr(taken.get(each), "help", field.help)).split())
        assert f"\n{each}\n    " in function.__doc__


@operation
def made(
    name: Annotated[str, Name("Whose.", "NAME", argument=True)],
    *,
    memory: Annotated[Any, Size("How much.")],
    time: Annotated[Any, Duration("How long.", option="--lasts")] = "2s",
    runs: Annotated[int, Count("How often.", provenance=False)] = 1,
    quick: Annotated[bool, Flag("In a hurry.")] = False,
    seen: Annotated[Any, Field("Of all given.", constant=lambda given: given["quick"])] = None,
) -> Listing:
    """Say what was understood.

    Examples::

        flashsim made x --memory 1MiB

    Examples
    --------
    >>> made("x", memory="1MiB").rows[0]["memory"]
    1048576
    """
    told = {"name": name, "memory": memory, "time": time, "runs": runs, "quick": quick, "seen": seen}
    if runs > 3:
        raise FlashsimError("runs: too many; take fewer " + option("runs") + ", or less " + option("lasts", "time"))
    return Listing([str(told)], [told], told | {"parameters": origin()["parameters"]})


def test_one_signature_makes_function_command_checks_and_provenance(here: Path) -> None:
    told = made("x", memory="1MiB", time="1ms").document
    assert told == told | {"memory": 1 << 20, "time": 10**6, "runs": 1, "seen": None}
    assert told["parameters"] == {"name": "x", "memory": 1 << 20, "time": 10**6, "quick": False, "seen": None}
    line: Callable[..., Any] = lambda *words: CliRunner().invoke(command(made, "made"), words)  # noqa: E731
    done = line("x", "--memory", "1MiB", "--lasts", "1ms", "--quick", "--json", "made.json")
    assert done.exit_code == 0 and done.stdout.startswith(
        "{'name': 'x', 'memory': 1048576, 'time': 1000000, 'runs': 1, 'quick': True, 'seen': True}"
    )
    assert Path("made.json").read_text().count("1048576") == 2
    for given, words, message in (
        ({"memory": 5}, ("--memory", "5"), "memory: .*but"),
        ({"memory": "1MiB", "time": "2"}, ("--memory", "1MiB", "--lasts", "2"), "(time|--lasts): '2', but"),
        ({"memory": "1MiB", "runs": 0}, ("--memory", "1MiB", "--runs", "0"), "runs: 0, but it must be at least 1"),
    ):
        with pytest.raises(FlashsimError, match=message):
            made("x", **given)  # type: ignore[arg-type]
        refused = line("x", *words)
        assert isinstance(refused.exception, FlashsimError) and str(refused.exception).startswith("--")
    with pytest.raises(FlashsimError, match="take fewer runs, or less time$"):
        made("x", memory="1B", runs=4)


def test_python_and_the_command_replay_alike(here: Path, flashsim: Run) -> None:
    """Several presets, a state and a part of a trace, on both sides."""
    import flashsim as fs

    Path("a.csv").write_text("Stamp,Offset,Length,Op\n" + "".join(f"{time},{time * 8},8,read\n" for time in range(9)), encoding="utf-8")
    told = {"format": "csv", "columns": "time=Stamp:ms,offset=Offset:sectors,length=Length:sectors,operation=Op", "window": "5ms"}
    ours = fs.replay("a.csv", ["intel-x25e-64gb", "micron-p300"], precondition="random:0.01", **told).summary()
    line = "trace replay a.csv --device intel-x25e-64gb --device micron-p300 --precondition random:0.01 --json r.json"
    done = flashsim(f"{line} {' '.join(f'--{name} {value}' for name, value in told.items())}")
    assert done.exit_code == 0 and done.stdout.count("state before: 1% written at random") == 2
    assert ours["requests"].tolist() == [5, 5] or ours["requests"].tolist() == [6, 6]
    assert {"p99_us", "p99.9_us"} <= set(ours) and ours["device"].tolist() == ["intel-x25e-64gb", "micron-p300"]

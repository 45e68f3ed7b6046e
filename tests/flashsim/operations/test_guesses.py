"""What users of Python guess: names, columns, words of pandas and attributes, each answered in one line that names what is right."""

from __future__ import annotations

import pickle
from typing import Any

import pandas as pd
import pytest

import flashsim as fs
from flashsim.core.errors import FlashsimError
from flashsim.core.rng import generator

R = pd.DataFrame({"key": [1, 2, 3], "name": list("abc")})
S = pd.DataFrame({"key": [3, 1, 3, None], "value": [0.5, 1.5, 2.5, 3.5]})
SMALL: dict[str, Any] = {"device": "ocz-core-60gb", "memory": "64KiB"}
GUESSES = {
    "fs.joins": "did you mean join",
    "fs.join(R, S, 'key', algorithm='hybird-hash', **SMALL)": "algorithm: join: 'hybird-hash' is unknown; did you mean hybrid-hash",
    "fs.join(R, S, 'key', device='ocz-core-60g', memory='64KiB')": "preset: 'ocz-core-60g' is unknown; did you mean ocz-core-60gb",
    "fs.join(R, S, 'kye', **SMALL)": "on: column of r: 'kye' is unknown; did you mean key?",
    "fs.join(R, S, 'key=valu', **SMALL)": "on: column of s: 'valu' is unknown; did you mean value?",
    "fs.join(R, S, left_on='key', right_on='key', **SMALL)": "left_on: not an argument, but on='LEFT_COLUMN=RIGHT_COLUMN' names both",
    "fs.join(R, S, 'key', how='left', **SMALL)": "how: not an argument, but every join is an inner join",
    "fs.join(R, S, 'key', memroy='64KiB', device='ocz-core-60gb')": "argument: 'memroy' is unknown; did you mean memory",
    "fs.join(left=R, right=S, on='key', **SMALL)": "left: not an argument, but the arguments r and s are the two tables",
    "fs.join(R, S, 'key', suffixes=('_x', '_y'), **SMALL)": "suffixes: not an argument, but a column of s whose name is taken gets",
    "fs.fetch(R, S, left_on='key', right_on='key', frames=3)": "left_on: not an argument, but on='LEFT_COLUMN=RIGHT_COLUMN' names both",
    "fs.fetch(R, S, on='key', frames=3, plannr='overlap')": "argument: 'plannr' is unknown; did you mean planner",
    "fs.fetch(R, S, on='key=valu', frames=3)": "on: column of s: 'valu' is unknown; did you mean value?",
    "fs.merge": "fs.join joins two tables",
    "fs.drive('ocz')": "device preset: 'ocz' is unknown; did you mean ocz-core-60gb or ocz-vertex-3?",
    "RESULT.to_csv('x.csv')": "JoinOutcome has no to_csv; .summary() is the result as a DataFrame: .summary().to_csv",
    "RESULT.to_frame()": ".summary() is the result as a DataFrame",
    "RESULT.frame": ".summary() is the result as a DataFrame",
    "RESULT.time": "times are columns of .summary(): io_s, cpu_s, total_s",
    "RESULT.io_s": "it is a column: .summary()['io_s']",
    "RESULT.sumary()": "did you mean summary",
}


@pytest.fixture(scope="module")
def result() -> Any:
    return fs.join(R, S, "key", **SMALL)


@pytest.mark.parametrize("guess", GUESSES)
def test_a_wrong_guess_is_answered_in_one_line(guess: str, result: Any) -> None:
    with pytest.raises(FlashsimError) as caught:
        eval(guess, {"fs": fs, "R": R, "S": S, "SMALL": SMALL, "RESULT": result})
    assert GUESSES[guess] in str(caught.value) and "\n" not in str(caught.value)


def test_jupyter_shows_one_line_and_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell()
    for line in ("fs.joins", "fs.join(1, 2, 3, 4, 5)", "fs.join('a.csv', 'b.csv', 'key', device='ocz-core-60g', memory='1MiB')"):
        shell.run_cell(f"import flashsim as fs\n{line}")
        shown = capsys.readouterr().out.strip().splitlines()
        assert len(shown) == 1 and "Error: " in shown[0], shown


def test_a_result_is_still_copied_and_has_no_strange_attributes(result: Any) -> None:
    assert not hasattr(result, "_repr_png_") and not hasattr(result, "nothing_such")
    with pytest.raises(AttributeError):
        type(result).__new__(type(result)).frame  # noqa: B018
    assert pickle.loads(pickle.dumps(fs.fetch({"key": [1]}, {"key": [1]}, on="key", frames=2).graph)).edges == 1


def test_a_fetch_takes_two_tables_as_a_join_does() -> None:
    """Edges are pages with rows of equal keys, and their results the pairs, as pandas finds them; NULL meets nothing."""
    draw = generator(7, "two tables")
    r, s = (pd.DataFrame({"key": draw.integers(0, 400, size=count), "more": "x" * 100}) for count in (2000, 900))
    s["key"] = s["key"].astype("Int64").mask(s["key"] % 7 == 0)
    graph = fs.fetch(r, s, on="key", frames=4, page_size="2KiB", planner="overlap").graph
    pairs = r.assign(row=range(len(r))).merge(s.dropna().assign(other=range(len(s.dropna()))), on="key")
    assert graph.edges > 50 and int(graph.results.sum()) == len(pairs)
    with pytest.raises(FlashsimError, match="s: two relations need on"):
        fs.fetch(r, s, frames=4)
    with pytest.raises(FlashsimError, match="on: it needs s"):
        fs.fetch(r, on="key", frames=4)


def test_pictures_have_a_title_and_labels_and_these_lie_inside(result: Any) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    for each in (result, fs.cache([1, 2, 3, 1] * 20, policy=["lru", "arc"], size=[2, 3]), fs.fetch(R, S, on="key", frames=3)):
        figure = each.plot().figure
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        shown = [axes for axes in figure.axes if axes.axison and axes.get_visible()]
        assert figure.get_suptitle() or any(axes.get_title() for axes in shown), each
        assert any(axes.get_xlabel() or axes.get_xticklabels() for axes in shown) and any(axes.get_ylabel() for axes in shown), each
        drawn, (width, height) = figure.get_tightbbox(canvas.get_renderer()), figure.get_size_inches()
        assert min(drawn.x0, drawn.y0) > -0.02 and drawn.x1 < width + 0.02 and drawn.y1 < height + 0.02, (each, drawn)

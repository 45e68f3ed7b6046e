"""Faults are planted where they change what runs, and where they are told to stand."""

from __future__ import annotations

import ast

from tests import mutants
from tests.changes import ROOT

TEXT = '''
def least(values: list[int], most: int = 3) -> int:
    """The least, at most 3."""
    if not values and most > 1:
        raise ValueError(f"no values, {1 + 1}")
    values.sort()
    return min(values[0], most)
'''


def test_each_operator_has_its_fault_and_messages_have_none() -> None:
    (function,) = (node for node in ast.walk(ast.parse(TEXT)) if isinstance(node, ast.FunctionDef))
    found = {(operator, ast.unparse(node), after) for operator, node, after in mutants.faults(function, TEXT)}
    assert found == {
        ("condition negated", "not values and most > 1", "(not (not values and most > 1))"),
        ("and and or", "not values and most > 1", "(not values or most > 1)"),
        ("comparison", "most > 1", "(most >= 1)"),
        ("off by one", "1", "2"),
        ("off by one", "0", "1"),
        ("statement removed", "values.sort()", "pass"),
        ("arguments swapped", "min(values[0], most)", "min(most, values[0])"),
        ("default returned", "return min(values[0], most)", "return 0"),
    }


def test_every_kept_mutant_has_one_function_to_itself_and_an_outcome_or_none() -> None:
    kept = mutants.load()
    assert len({(each.file, each.line) for each in kept}) == len(kept) == 60 and sum(each.recent for each in kept) == 30
    assert {each.outcome for each in kept} <= {"", "default", "deep", "passed", "survived", "equivalent"}
    assert all(bool(each.killer) == (each.outcome in ("default", "deep")) for each in kept)
    assert all((ROOT / each.file).suffix == ".py" and ast.parse(each.after.strip()) for each in kept)

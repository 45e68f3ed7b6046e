"""Errors: one line that names parameter, value and bound."""

from __future__ import annotations

import pickle

from flashsim.core import errors
from flashsim.core.errors import FORCE, FlashsimError, InvalidParameterError, MissingExtraError, UnknownNameError, option
from tests.cases import with_each


def test_all_belong_to_one_hierarchy() -> None:
    own = [
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, Warning)
    ]
    assert len(own) > 5
    assert all(issubclass(kind, FlashsimError) and kind.__doc__ for kind in own)


def test_a_long_word_is_shortened_in_any_message() -> None:
    assert (
        str(FlashsimError(f"figures: cannot read {'x' * 5000} now"))
        == f"figures: cannot read {'x' * 200}...{'x' * 200} (5,000 characters) now"
    )


def test_options_are_named_in_the_words_of_each_side_and_paths_stay_as_they_are() -> None:
    bound = "it is in ./--page-size; add " + FORCE + " or " + option("on", "device") + "=x"
    problem = pickle.loads(pickle.dumps(InvalidParameterError("out", "--folder", bound)))
    assert str(problem) == "out: --folder, but it is in ./--page-size; add --force or --on=x"
    problem.reword()
    assert str(problem) == "out: --folder, but it is in ./--page-size; add force=True or device=x"


def test_a_message_names_parameter_value_and_bound() -> None:
    problem = InvalidParameterError("memory", "12 pages", "grace-hash needs more than 335")
    assert str(problem) == "memory: 12 pages, but grace-hash needs more than 335"
    assert (problem.parameter, problem.value, problem.bound) == ("memory", "12 pages", "grace-hash needs more than 335")
    assert isinstance(problem, ValueError)


@with_each(
    ("name", "known", "hint"),
    [
        ("grace-hahs", ["bnl", "grace-hash", "hybrid-hash"], "did you mean grace-hash"),
        ("grace_hash", ["bnl", "grace-hash"], "did you mean grace-hash?"),
        ("LRU", ["2q", "arc", "lru"], "did you mean lru?"),
        ("zzz", ["sort-merge", "bnl"], "known: bnl, sort-merge"),
        ("zzz", [], "known: none"),
    ],
)
def test_an_unknown_name_comes_with_suggestions(name: str, known: list[str], hint: str) -> None:
    message = str(UnknownNameError("algorithm", name, known))
    assert message.startswith(f"algorithm: '{name}' is unknown; ")
    assert hint in message
    assert "\n" not in message


def test_a_missing_extra_says_how_to_install_it() -> None:
    assert "pip install 'flashsim[tpch]'" in str(MissingExtraError("tpchgen-cli", "tpch"))

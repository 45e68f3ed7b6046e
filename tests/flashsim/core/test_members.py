"""Families: the folder is the list, and a member that cannot be had is one line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from flashsim.core.errors import FlashsimError, MissingExtraError, MissingFileError, UnknownNameError
from flashsim.core.members import Family, optional
from tests.cases import with_each


class Policy(Protocol):
    """What the members of the test's family are."""

    AGE: int = 7

    def choose(self) -> int:
        """Any number."""

    @optional
    def doubled(self) -> int:
        """What it chooses, twice."""
        return 2 * self.choose()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package ``family_of_a_test`` with a contract, a shared part, and two members."""
    package = tmp_path / "family_of_a_test"
    package.mkdir()
    for name in ("__init__", "base", "_shared"):
        (package / f"{name}.py").write_text("")
    (package / "first.py").write_text("def choose():\n    return 1\n")
    (package / "second_best.py").write_text("def choose():\n    return 2\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield package
    for name in [name for name in sys.modules if name.startswith("family_of_a_test")]:
        del sys.modules[name]


@pytest.fixture
def family(folder: Path) -> Family[Policy]:
    return Family(folder.name, "policy", Policy)


def test_the_folder_is_the_list(family: Family[Policy], folder: Path) -> None:
    assert family.names() == ["first", "second-best"]
    (folder / "added.py").write_text("choose = None\n")
    assert family.names() == ["added", "first", "second-best"]


def test_a_package_in_the_folder_is_a_member(family: Family[Policy], folder: Path) -> None:
    (folder / "large").mkdir()
    (folder / "large" / "__init__.py").write_text("from family_of_a_test.large.part import choose\n")
    (folder / "large" / "part.py").write_text("def choose():\n    return 3\n")
    assert family.names() == ["first", "large", "second-best"] and family.load("large").choose() == 3


def test_what_a_member_leaves_out_is_as_in_the_contract(family: Family[Policy], folder: Path) -> None:
    assert family.needs == ["choose"]
    (folder / "own.py").write_text("AGE = 1\ndef choose():\n    return 5\ndef doubled():\n    return 11\n")
    first, own = family.load("first"), family.load("own")
    assert (first.AGE, first.doubled()) == (7, 2) and (own.AGE, own.doubled()) == (1, 11)


def test_only_the_chosen_member_is_imported(family: Family[Policy], folder: Path) -> None:
    (folder / "broken.py").write_text("raise RuntimeError\n")
    assert "broken" in family.names()
    assert family.load("second-best").choose() == 2
    assert f"{folder.name}.first" not in sys.modules


def test_an_unknown_member_is_refused_with_suggestions(family: Family[Policy]) -> None:
    with pytest.raises(UnknownNameError, match="policy: 'secondbest' is unknown; did you mean second-best?"):
        family.load("secondbest")


@with_each("name", ["base", "-shared", "__init__", "family_of_a_test"])
def test_what_is_no_member_has_no_name(family: Family[Policy], name: str) -> None:
    with pytest.raises(UnknownNameError):
        family.load(name)


def test_a_path_is_a_member(family: Family[Policy], tmp_path: Path) -> None:
    for place, answer in (("one", 10), ("two", 20)):
        (tmp_path / place).mkdir()
        (tmp_path / place / "mine.py").write_text(f"def choose():\n    return {answer}\n")
    one, two = (family.load(str(tmp_path / place / "mine.py")) for place in ("one", "two"))
    assert (one.choose(), two.choose()) == (10, 20)


def test_a_path_to_nothing_is_refused(family: Family[Policy], tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="nowhere.py"):
        family.load(str(tmp_path / "nowhere.py"))


@with_each("source", ["def choose(:\n", "raise RuntimeError('two\\nlines')\n", "import nothing_of_that_name\n", "1 / 0\n"])
@with_each("inside", [True, False])
def test_a_broken_file_is_one_line_with_its_name(family: Family[Policy], folder: Path, tmp_path: Path, source: str, inside: bool) -> None:
    file = (folder if inside else tmp_path) / "broken.py"
    file.write_text(source)
    with pytest.raises(FlashsimError, match="^policy: .*broken.* cannot be imported: ") as caught:
        family.load("broken" if inside else str(file))
    assert "\n" not in str(caught.value)
    assert not [name for name in sys.modules if "broken" in name]


def test_a_member_may_say_itself_what_it_lacks(family: Family[Policy], folder: Path) -> None:
    (folder / "needy.py").write_text("from flashsim.core.errors import MissingExtraError\nraise MissingExtraError('that', 'extra')\n")
    with pytest.raises(MissingExtraError, match="that is not installed"):
        family.load("needy")


def test_a_member_without_the_contract_is_refused(family: Family[Policy], folder: Path) -> None:
    (folder / "empty.py").write_text("")
    with pytest.raises(FlashsimError, match="policy: 'empty' does not define choose"):
        family.load("empty")


def test_a_member_for_a_former_contract_is_refused_with_the_new_name(folder: Path) -> None:
    family = Family(folder.name, "policy", Policy, renamed={"chosen": "choose"})
    (folder / "former.py").write_text("def chosen(): ...")
    with pytest.raises(FlashsimError, match="policy: 'former' defines chosen, which is called choose now"):
        family.load("former")

"""Options that members declare in records."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest

from algorithms.joins.base import JOINS, BucketOptions, JoinParameters, join_options, partitioning_of
from algorithms.joins.digest import DigestOptions
from flashsim.core.errors import FlashsimError, InvalidParameterError
from flashsim.core.options import Option, options_in
from flashsim.experiments.runs.joining import JoinSetting, check_names


@dataclass(frozen=True)
class _Inherited:
    near: Annotated[int, Option("How near.", kind="count")] = 1
    hidden: int = 2


@dataclass(frozen=True)
class _Own(_Inherited):
    far: Annotated[str, Option("How far.", "PLACE")] = ""


def test_own_options_come_before_inherited_ones_and_plain_fields_are_none() -> None:
    assert {name: option.kind for name, option in options_in(_Own).items()} == {"far": "name", "near": "count"}


def test_joins_that_have_an_option_of_one_name_declare_it_alike() -> None:
    for name in JOINS.names():
        assert options_in(JOINS.load(name).OPTIONS).items() <= join_options().items()


def test_options_as_members_named_them_before_are_refused(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text('from algorithms.joins.grace_hash import allocate, join\n\nOPTIONS = ("partition",)\n', encoding="utf-8")
    with pytest.raises(FlashsimError, match=r"OPTIONS: \('partition',\), but a record of options is needed"):
        check_names(JoinSetting(str(mine), 20), "ocz-core-60gb")


@dataclass(frozen=True)
class _MoreOptions(BucketOptions):
    buckets: Annotated[int, Option("Buckets at least.", kind="count")] = 1


def test_a_join_may_take_an_option_more_than_partition_methods() -> None:
    """Its record is made of the plain one, with defaults, and the method gets what it knows."""
    plain, own = (JoinParameters(20, options=each) for each in (BucketOptions("n-hash", 512), _MoreOptions("n-hash", 512, buckets=3)))
    assert plain.options_of(_MoreOptions) == _MoreOptions("n-hash", 512) and own.options_of(_MoreOptions).buckets == 3
    assert partitioning_of(own) == partitioning_of(plain)


def test_options_of_another_join_are_refused() -> None:
    with pytest.raises(InvalidParameterError, match="options: DigestOptions, but this join takes BucketOptions"):
        JOINS.load("grace-hash").check(JoinParameters(20, options=DigestOptions()))

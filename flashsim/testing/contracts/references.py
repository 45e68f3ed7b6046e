"""The contract of generated references: a seed makes them, their number is that which was asked for, and any values are checked."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from flashsim.core.errors import InvalidParameterError, UnknownNameError
from flashsim.core.request import Integers
from flashsim.core.transactions import BATCH
from flashsim.testing.contract import Contract
from traces.references.base import GENERATORS, generated


def needed(declared: type[Any]) -> str:
    """Values of the parameters that have no default: a thousand, or the least."""
    fields = [field for field in dataclasses.fields(declared) if field.default is dataclasses.MISSING]
    return ",".join(f"{field.name.replace('_', '-')}={max(field.metadata.get('least') or 0, 1000)}" for field in fields)


def check_declared(declared: type[Any], values: str, made: Callable[[str], object]) -> None:
    """Each parameter says what it means, and refuses what it cannot be, given with others, in one line."""
    for field in dataclasses.fields(declared):
        assert field.metadata.get("meaning"), f"{field.name} is not declared with flashsim.core.parameters, or has no meaning"
        kind, option = field.metadata["type"], field.name.replace("_", "-")
        others = [part for part in values.split(",") if not part.startswith(f"{option}=")]
        for wrong in ("-1", "x", "1e30", "nan"):
            if (kind is bool and wrong == "x") or (kind is str and not field.metadata["parse"]):
                continue
            refusal = ""
            try:
                made(",".join([*others, f"{option}={wrong}"]))
            except (InvalidParameterError, UnknownNameError) as problem:
                refusal = str(problem)
            assert refusal and "\n" not in refusal, f"{option}={wrong} is not refused in one line: {refusal}"


def drawn(text: str) -> tuple[Integers, npt.NDArray[np.bool_]]:
    """All pages that are asked for, and which of the references write."""
    batches = list(generated(text).batches())
    assert all(0 < len(batch.pages) <= BATCH for batch in batches), f"a batch is empty, or has more than {BATCH} references"
    writes = [np.zeros(len(batch.pages), np.bool_) if batch.writes is None else batch.writes for batch in batches]
    return np.concatenate([batch.pages for batch in batches]), np.concatenate(writes)


class ReferencesContract(Contract):
    """Properties of generated references (`traces.references.base`)."""

    FAMILY = GENERATORS

    @property
    def values(self) -> str:
        """Parameters of small references."""
        return needed(GENERATORS.load(self.name).Stream)

    def text(self, more: str) -> str:
        """How references are asked for."""
        return f"{self.name}:{','.join(each for each in (self.values, more) if each)}"

    def test_a_seed_makes_as_many_references_as_are_asked_for(self) -> None:
        """In more than one batch, the same ones every time, of pages below the most that there are."""
        count = BATCH + 1000
        pages, writes = drawn(self.text(f"references={count}"))
        assert len(pages) == len(writes) == count, f"{count} references are asked for, and {len(pages)} made"
        assert pages.dtype == np.int64 and writes.dtype == np.bool_, f"pages are {pages.dtype}, writes {writes.dtype}"
        most = generated(self.text(f"references={count}")).stream.most_pages
        assert pages.min() >= 0 and (most is None or pages.max() < most), f"pages {pages.min()} to {pages.max()} of {most}"
        again = drawn(self.text(f"references={count},seed=0"))
        assert np.array_equal(again[0], pages) and np.array_equal(again[1], writes), "the same seed makes other references"

    def test_another_seed_makes_other_references(self) -> None:
        first, second = (drawn(self.text(f"references=5000,seed={seed}"))[0] for seed in (0, 1))
        if np.array_equal(first, second):
            pytest.skip("nothing is drawn: seeds 0 and 1 make the same")

    def test_fewer_references_are_the_first_of_more(self) -> None:
        texts = [self.text(f"references={count}") for count in (BATCH + 1000, 5000)]
        if len({generated(text).stream.most_pages for text in texts}) > 1:
            pytest.skip("its pages grow with the references")
        many, few = map(drawn, texts)
        assert all(np.array_equal(one[:5000], other) for one, other in zip(many, few, strict=True)), "5000 are not the first of more"

    def test_every_parameter_is_declared_and_checked(self) -> None:
        member = GENERATORS.load(self.name)
        assert member.TITLE, "it has no title"
        check_declared(member.Stream, self.values, lambda values: generated(f"{self.name}:{values}"))

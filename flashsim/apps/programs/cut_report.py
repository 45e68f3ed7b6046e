"""What power cuts of a recorded program came to: outcomes that were looked at, and failures."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from flashsim.apps.programs.recipes import Failure


@dataclass(frozen=True)
class Coverage:
    """How much of what a cut can leave was looked at."""

    #: The call after which power was cut, in words.
    call: str
    #: Outcomes by the rules; None if more effects are pending than are counted.
    possible: int | None
    tried: int
    #: Classes of outcomes that were never tried, such as "2 lost, 1 torn".
    never: tuple[str, ...]


@dataclass
class CutReport:
    """Results of power cuts of a program."""

    calls: int = 0
    #: Outcomes of cuts that were looked at.
    cuts: int = 0
    #: Distinct states of files, and of what had been printed, that were checked.
    images: int = 0
    #: Of the cuts and the images those of the simulated drive, if there is one, and of its cuts those that lost what was durable.
    on_drive: dict[str, int] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    #: Images that the check does not pass.
    failed_images: int = 0
    #: A row per state of the program that power was cut in.
    coverage: list[Coverage] = field(default_factory=list)
    #: What the recording does not show.
    missed: Sequence[str] = ()

    @property
    def is_complete(self) -> bool:
        """Whether these are all images that the rules allow."""
        return all(each.tried == each.possible for each in self.coverage)

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        failures = [
            {"call": each.call, "recipe": list(each.recipe), "exit_code": each.answer.code, "output": each.output, "count": each.count}
            for each in self.failures
        ]
        counts: dict[str, Any] = {"calls": self.calls, "cuts": self.cuts, "images": self.images, "failed_images": self.failed_images}
        counts |= {"is_complete": self.is_complete, "coverage": [asdict(each) for each in self.coverage]}
        return counts | {"on_drive": self.on_drive, "failures": failures, "missed": list(self.missed)}

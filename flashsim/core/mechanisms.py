"""Mechanisms of a device: what takes time besides what its data sheet says, and the change that makes each ideal."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class DeviceMechanism:
    """A mechanism of a device: in the field's words, and as changes of the device's parameters that make it ideal."""

    name: str
    #: As a noun, such as ``garbage collection``.
    title: str
    #: What it does to requests, a sentence without its full stop, such as ``requests wait for pages that collection moves``.
    sentence: str
    #: Values of parameters, by name; those of several mechanisms are joined.
    changes: Mapping[str, Any] = field(default_factory=dict)
    #: Name in the parameter ``ideal`` of a flash drive.
    ideal: str = ""
    #: Commands are as long as the device has room for.
    is_split: bool = False
    #: The decision that it changes; of most nothing but times.
    decides: str = ""
    #: It is a wait for a server, which other mechanisms keep busy.
    is_wait: bool = False
    #: Requests come one after another; and whether it is removed before all others (-1) or behind them (1).
    one_at_a_time: bool = False
    #: Name under which mechanisms that only the order of removal separates are added up, where two runs are compared.
    group: str = ""
    rank: int = 0


def changes_of(mechanisms: tuple[DeviceMechanism, ...]) -> dict[str, Any]:
    """Changes of parameters that make all of some mechanisms ideal."""
    changes: dict[str, Any] = {}
    for mechanism in mechanisms:
        changes |= mechanism.changes
    ideals = [mechanism.ideal for mechanism in mechanisms if mechanism.ideal]
    return changes | ({"ideal": "+".join(ideals)} if ideals else {})

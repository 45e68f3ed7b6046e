"""What a design is: a file with the five kernels of `flashsim.storage.extension.design`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from flashsim.core.kernel import compiled, pointer_to
from flashsim.core.members import Family
from flashsim.core.policies import compiled_member
from flashsim.core.replacement import Parameter
from flashsim.execution.pooled.system import ExtensionDesign
from flashsim.storage.extension.design import DESIGN_KERNELS


class Design(Protocol):
    """A member's module."""

    TITLE: str
    evicted: Callable[[Any, int, int], int]
    fetched: Callable[[Any, int, int], int]
    served: Callable[[Any, int, int], int]
    modified: Callable[[Any, int], int]
    key: Callable[[Any, int], int]
    PARAMETERS: Mapping[str, Parameter] = {}
    SSD: bool = True  # it uses an SSD at all


DESIGNS = Family("algorithms.extensions", "SSD buffer-pool extension", Design)


def extension_design(name: str) -> ExtensionDesign:
    """A design, given as ``NAME`` or ``FILE.py``."""
    member = DESIGNS.load(name)
    functions = [compiled_member(DESIGNS.kind, name, each, getattr(member, each), kind) for each, kind in DESIGN_KERNELS.items()]
    kernels = np.array([pointer_to(function.cres) for function in functions]) if compiled() else tuple(functions)
    return ExtensionDesign(name, {}, kernels)

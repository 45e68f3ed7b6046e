"""Contract of designs: a design is a file with the five kernels of `flashsim.storage.extension.design`."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from flashsim.core.compiling import Part, member_parts
from flashsim.core.members import Family
from flashsim.core.parameters import whole_numbers
from flashsim.core.policies import compiled_member, vector_of
from flashsim.core.replacement import Parameter
from flashsim.execution.pooled.system import ExtensionDesign
from flashsim.storage.extension.design import DESIGN_KERNELS
from flashsim.storage.extension.state import FIRST_PARAMETER, OWN_NUMBER


class Design(Protocol):
    """A member's module."""

    TITLE: str
    on_evict: Callable[[Any, int, int], int]
    on_fetch: Callable[[Any, int, int], int]
    on_serve: Callable[[Any, int, int], int]
    on_modify: Callable[[Any, int], int]
    key: Callable[[Any, int], int]
    PARAMETERS: Mapping[str, Parameter] = {}
    SSD: bool = True  # it uses an SSD at all
    WRITE_BACK: bool = False  # a page may be newer on the SSD than on disk
    ROTATES: bool = False  # the SSD's frames are taken one after the other, whatever they hold
    WORDS: int | Callable[[Mapping[str, int], int], int] = 0  # for its own use, perhaps by the values of its parameters and by pages


#: Former names of the kernels, and their names now.
_RENAMED = {"evicted": "on_evict", "fetched": "on_fetch", "served": "on_serve", "modified": "on_modify"}
DESIGNS = Family("algorithms.extensions", "SSD buffer-pool extension", Design, renamed=_RENAMED)


def extension_design(text: str, **parameters: int) -> ExtensionDesign:
    """A design, given as ``NAME`` or ``FILE.py``, with parameters by name or behind it, as in ``tac:extent=16,aging=100000``.

    Raises UnknownNameError or MissingFileError: there is no such design, file or parameter; InvalidParameterError: a parameter out of its
    bounds; FlashsimError: the file is no design, or a kernel of it does not compile.

    >>> extension_design("tac:extent=16").parameters["extent"]
    16
    """
    described, name = described_design(text, **parameters), text.partition(":")[0]
    member = DESIGNS.load(name)
    kernels = [compiled_member(DESIGNS.kind, name, each, getattr(member, each), kind) for each, kind in DESIGN_KERNELS.items()]
    return replace(described, kernels=vector_of(kernels))


def described_design(text: str, **parameters: int) -> ExtensionDesign:
    """Results and refusals of `extension_design` without kernels, of which none is compiled here."""
    member = DESIGNS.load(text.partition(":")[0])
    values = whole_numbers(DESIGNS.kind, text, member.PARAMETERS, parameters, OWN_NUMBER - FIRST_PARAMETER)
    return ExtensionDesign(text, values, (), member.SSD, member.WRITE_BACK, member.ROTATES, member.WORDS)


def design_parts(names: Iterable[str]) -> list[Part]:
    """The kernels of some designs that are compiled apart."""
    return member_parts(DESIGNS, names, DESIGN_KERNELS, f"{__name__}:{extension_design.__name__}")

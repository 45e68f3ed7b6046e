"""The simulators of each kind of drive, and compiling those that a preset needs, once on a machine."""

from functools import cache
from importlib import import_module
from typing import Any

from flashsim.core.compiling import Compilation, Part, parts_of
from flashsim.core.errors import InvalidParameterError
from flashsim.core.policies import Policy
from flashsim.device.presets import Preset
from flashsim.hdd.parameters import HddParameters

MODELS = ("engine", "specification")  #: The two witnesses of each kind of drive.
#: The modules of each kind's models, in full, since kept results rest on every module that a source names; a class is named after both.
_MODULES = {
    "hdd": {"engine": "flashsim.hdd.engine.drive", "specification": "flashsim.hdd.specification.drive"},
    "ssd": {"engine": "flashsim.ssd.engine.drive", "specification": "flashsim.ssd.specification.drive"},
    "station": {"engine": "flashsim.device.station.engine", "specification": "flashsim.device.station.specification"},
    "striped": {"engine": "flashsim.device.striped.engine", "specification": "flashsim.device.striped.specification"},
}
_TITLES = {"hdd": "disk", "ssd": "flash"}


def classes_of(preset: Preset, model: str) -> tuple[Any, Any]:
    """A preset's simulator, and that of an array of such, None of a single drive; what is not asked for is not loaded."""
    if model not in MODELS:
        raise InvalidParameterError("model", repr(model), f"it must be one of {', '.join(MODELS)}")

    def simulator(kind: str) -> Any:
        return getattr(import_module(_MODULES[kind][model]), kind.title() + model.title())

    return simulator(preset.kind), simulator("striped") if preset.array else None


def check_policies(preset: Preset) -> None:
    """Refuse members of families that there are not, or that do not go together; nothing is compiled."""
    for policy, member in _policies(preset).items():
        policy.family.load(member)
    if preset.flash is not None:
        from flashsim.ssd.ftl.base import compatible_layer

        compatible_layer(preset.flash)


def begin(preset: Preset, model: str = "engine") -> Compilation | None:
    """Begin to compile what a preset's simulator needs and the cache does not hold, in the background."""
    return _compilation(*_compiled_parts(preset)) if model == "engine" else None


def parts_for(preset: Preset) -> list[Part]:
    return _parts(*_compiled_parts(preset))


def finish(preset: Preset, model: str = "engine") -> None:
    """Wait until what a preset's simulator needs is compiled."""
    compilation = begin(preset, model)
    if compilation is not None:
        compilation.wait(f"the {_TITLES.get(preset.kind, preset.kind)} engine")


def all_parts() -> dict[str, list[Part]]:
    """Kernels to compile of all kinds of drives with all their policies, by their drive or policy."""
    from flashsim.hdd.scheduler.base import CHOOSE
    from flashsim.ssd.ftl.base import TRANSLATE
    from flashsim.ssd.gc.base import VICTIM
    from flashsim.ssd.wear.base import LEVELS, OPENS

    def parts(kind: str, *policies: Policy) -> list[Part]:
        return parts_of([_MODULES[kind]["engine"]], [(policy, member) for policy in policies for member in policy.family.names()])

    return {
        "flash drive": parts("ssd", TRANSLATE, VICTIM, OPENS, LEVELS),
        "disk": parts("hdd", CHOOSE),
        "station": parts("station"),
        "array": parts("striped"),
        "compiled loop": parts_of([f"flashsim.execution.{name}" for name in ("closed_clients", "pooled.run", "scheduled_threads")]),
    }


def _compiled_parts(preset: Preset) -> tuple[tuple[str, ...], tuple[tuple[Policy, str], ...], tuple[str, ...]]:
    kinds = [preset.kind, "striped"] if preset.array else [preset.kind]
    flash, grouped = preset.flash, ("write_group", "fold_block", "fold_idle")
    on_demand = grouped if flash is not None and (flash.group > 1 or flash.slc_cache) else ()
    return tuple(_MODULES[kind]["engine"] for kind in kinds), tuple(_policies(preset).items()), on_demand


def _parts(modules: tuple[str, ...], policies: tuple[tuple[Policy, str], ...], on_demand: tuple[str, ...]) -> list[Part]:
    return [*parts_of(modules, policies), *(Part("flashsim.ssd.state.collection", name) for name in on_demand)]


@cache
def _compilation(modules: tuple[str, ...], policies: tuple[tuple[Policy, str], ...], on_demand: tuple[str, ...]) -> Compilation:
    return Compilation(_parts(modules, policies, on_demand))


def _policies(preset: Preset) -> dict[Policy, str]:
    if preset.flash is not None:
        from flashsim.ssd.state.drive_state import policies_of

        return policies_of(preset.flash)
    if isinstance(preset.parameters, HddParameters):
        from flashsim.hdd.scheduler.base import CHOOSE

        return {CHOOSE: preset.parameters.scheduler}
    return {}

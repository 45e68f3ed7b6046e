"""States of drives before a measurement, as command lines have them: ``steady``, ``random:0.8,erases=1000`` and the like."""

import re
from dataclasses import replace

from flashsim.core.errors import InvalidParameterError, RefusedError, UnknownNameError
from flashsim.core.protocols import Progress
from flashsim.device.device import Device
from flashsim.device.presets import Preset
from flashsim.experiments.replaying import kept_states
from flashsim.experiments.runs import kept
from flashsim.ssd.ftl import base as ftl_family
from flashsim.ssd.precondition import FILLS, Precondition
from models.occupancy import occupancy

_FORM = re.compile(r"(?P<fill>[^:,]+)(:(?P<share>[^:,]+))?(,erases=(?P<mean>[^:,]+)(:(?P<spread>[^:,]+))?)?")


def parse_state(text: str, preset: Preset, seed: int = 0, parameter: str = "precondition") -> Precondition:
    """The state that a text describes; a steady state starts from the models' occupancy for the drive's policy and over-provisioning."""
    form = _form_of(text, parameter)
    fill, parameters = form["fill"], preset.flash
    if parameters is None:
        raise RefusedError(f"{parameter}: {preset.name} is a disk, whose times do not depend on earlier writes")
    share, mean, spread = (_number(form[name], parameter) for name in ("share", "mean", "spread"))
    how = Precondition(fill, 1.0 if share is None else share, erases=mean, erases_spread=spread or 0.0, seed=seed)
    if fill != "steady" or not ftl_family.compatible_layer(parameters).PLACES_FREELY:
        return how
    alpha = 1 + parameters.effective_overprovisioning
    return replace(how, occupancy=occupancy(parameters.gc, alpha, parameters.slots_per_block, parameters.gc_choices))


def state(text: str, parameter: str) -> str:
    """A text that describes a state, as it is."""
    return _form_of(text, parameter).string


def _form_of(text: str, parameter: str) -> re.Match[str]:
    form = _FORM.fullmatch(text)
    if not form:
        raise InvalidParameterError(parameter, repr(text), "it must be STATE[:SHARE][,erases=MEAN[:SPREAD]], such as random:0.8")
    if form["fill"] not in FILLS:
        raise UnknownNameError(parameter, form["fill"], FILLS)
    if form["share"] and form["fill"] in ("empty", "steady"):
        raise InvalidParameterError(parameter, repr(text), f"'{form['fill']}' takes no share: it applies to the whole drive")
    return form


def bring_into(
    device: Device, text: str, seed: int = 0, progress: Progress | None = None, parameter: str = "precondition", *, keeps: bool = True
) -> str:
    """Bring a device into a state; return its description in one sentence.

    A steady state of an unused drive is kept for later runs, unless it is not to be (`keeps`) or takes too much room.
    """
    how = parse_state(text, device.preset, seed, parameter)
    if how.fill != "steady" or not keeps or device.zone_size or not device.content.is_unused:
        return _bring_into(device, how, progress)
    name = kept.identity({"parameters": repr(device.preset.flash), "state": text, "seed": seed}, __name__)
    if (sentence := kept_states.recall(device, name)) is None:
        kept_states.keep(device, name, sentence := _bring_into(device, how, progress))
    return sentence


def _bring_into(device: Device, how: Precondition, progress: Progress | None) -> str:
    result = device.precondition(how, progress)
    worn = "" if how.erases is None else f"; blocks erased {how.erases:g} times on average, standard deviation {how.erases_spread:g}"
    if result.fill == "empty":
        return f"empty{worn}"
    if result.halves is None:
        order = "in order" if result.fill == "sequential" else "at random, each page once"
        return f"{how.share:.0%} written {order}, in no time{worn}"
    steady = "steady" if result.steady else "not yet steady"
    return (
        f"as long random writes leave it, {steady}: write amplification {result.write_amplification:.3f} over {result.writes:,} writes "
        f"of a page in no time ({result.halves[0]:.3f}, then {result.halves[1]:.3f}){worn}"
    )


def _number(text: str | None, parameter: str) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        raise InvalidParameterError(parameter, repr(text), "a share, mean or spread is a number") from None

"""Why a query on a smart drive takes its time: by mechanisms of its drives, cores and the host's processor, and against the formula."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from flashsim.apps.smart import timing
from flashsim.apps.smart.placing import DRIVE
from flashsim.apps.smart.session import QueryAnswer
from flashsim.apps.smart.timing import SmartMachine
from flashsim.core.mechanisms import DeviceMechanism, changes_of
from flashsim.core.request import Integers
from flashsim.core.units import SECONDS
from flashsim.device.latency_parts import parts_of
from flashsim.device.mechanisms import mechanisms_of
from flashsim.execution.run import PhaseCost
from flashsim.experiments.why.answers import RunWhy
from flashsim.experiments.why.counterfactuals import Counterfactuals, Ideals
from flashsim.experiments.why.paths import PhasePath

QUERY = "query"
_PROCESSOR = DeviceMechanism("processor", "processor of the host", "the host works on rows")
_CORES = DeviceMechanism("cores", "cores of the drive", "the drive's cores work on rows")
#: Of a query inside, since its drive serves programs and not requests.
_INSIDE = {"inside": "session of the program in the drive"}


def why_query(answer: QueryAnswer, *, exact: bool = False) -> RunWhy:
    """Take a query in the place that was chosen for it apart; of one on the host, reads on the critical path and the processor's work."""
    machine, trial = answer.machine, answer.choice.trial
    is_inside, page_size = trial.placement.where == DRIVE, answer.table.file.page_size
    every = [*(each for each in mechanisms_of(machine.preset) if not each.is_split), _PROCESSOR, *([_CORES] if is_inside else [])]

    def evaluate(ideals: Sequence[Ideals]) -> list[Integers]:
        times = []
        for ideal in ideals:
            changed, own = _without(machine, ideal), trial.run.own if is_inside else ()
            seconds = (timing.drive_seconds if is_inside else timing.host_seconds)(changed, trial.run, page_size)
            seconds += timing.build_seconds(changed, trial.run, page_size, own)
            times.append(np.array([round(seconds * SECONDS)]))
        return times

    whole = round(trial.total * SECONDS)
    runs = Counterfactuals(every, np.array([whole]), evaluate, exact)
    path = PhasePath(np.array([whole]), 1, {}, _INSIDE) if is_inside else _host_path(answer)
    reads = int(path.parts.sum())
    cost, estimate = PhaseCost(QUERY, io_time=reads, user_time=whole - reads), [trial.placement.seconds * SECONDS]
    # the formula prices this work as the run does
    priced = {each.mechanism.name: float(each.removed.sum()) for each in runs.worths if each.mechanism in (_PROCESSOR, _CORES)}
    return RunWhy(machine.preset.name, trial.placement.where, [cost], {QUERY: path}, runs, estimate, estimate, QUERY, priced)


def _without(machine: SmartMachine, ideal: Ideals) -> SmartMachine:
    """The machine with ideal mechanisms."""
    preset, inside = machine.preset, machine.preset.inside
    parameters = replace(preset.parameters, **changes_of(ideal))
    if inside is not None and _CORES in ideal:
        inside = replace(inside, page_work=0, tuple_work=0, column_work=0, match_work=0)
    return replace(machine, preset=replace(preset, parameters=parameters, inside=inside), cpu=None if _PROCESSOR in ideal else machine.cpu)


def _host_path(answer: QueryAnswer) -> PhasePath:
    """The chain of reads of the drive that is last: each begins when the one before it in the chain has completed."""
    path, last = PhasePath(), 0
    for part in answer.choice.trial.run.parts:
        if part.pages:
            device, requests = timing.host_reads(answer.machine, part, answer.table.file.page_size)
            device.record_spans()
            completions = device.serve(requests, settle=False)
            end = int(completions["completed"].max())
            if end > last:
                last, chain = end, np.zeros(len(requests), bool)
                at = int(np.argmax(completions["completed"]))
                while at >= 0:
                    chain[at], at = True, int(requests["dependency"][at])
                path = PhasePath(parts_of(device, device.spans(), requests, completions)[chain].sum(axis=0), 1)
    return path

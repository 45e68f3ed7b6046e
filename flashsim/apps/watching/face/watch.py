"""``fs.watch``: a small drive or a join in steps, as a picture with a slider."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from algorithms.joins.base import plan
from flashsim.apps.watching.drive_steps import blocks_in_steps, timeline_in_steps
from flashsim.apps.watching.join_steps import memory_in_steps
from flashsim.apps.watching.steps import Steps
from flashsim.core.activity import activity
from flashsim.core.errors import InvalidParameterError, RefusedError
from flashsim.operations.face.join import JoinOutcome
from flashsim.operations.fields import choice, count, text
from flashsim.operations.operation import check_arguments, in_words_of_python
from flashsim.ssd.lab.drive import LabDrive

_VIEWS = {"blocks": blocks_in_steps, "time": timeline_in_steps}


@in_words_of_python()
@check_arguments
def watch(subject: object, writes: Iterable[int] = (), *, view: str = "blocks") -> Steps:
    """A small drive that is written, event by event, or a join's memory, request by request.

    Jupyter shows a slider if anywidget is installed (``pip install 'flashsim[notebook]'``), and otherwise one of the steps. The arrow keys
    go from step to step; a pointer over a rectangle shows what it is.

    Parameters
    ----------
    subject
        A drive of `fs.tiny_drive`, which is left as it is; or the result of `fs.join`, which is run once more without a device.
    writes
        Logical pages that are written to the drive, all at time 0, as many at once as its queue is deep.
    view
        Of a drive: ``"blocks"``, every flash page, and what waits for the dies; or ``"time"``, the work of each part over virtual time.

    Returns
    -------
    Steps
        Its method `save` writes a page with the slider (.html), or one step (.svg).

    Raises
    ------
    InvalidParameterError, RefusedError
        A page that the drive does not have, a subject or memory too large to be drawn, or a join without such buffers.

    Examples
    --------
    >>> import flashsim as fs
    >>> steps = fs.watch(fs.tiny_drive(), [5, 5])
    >>> steps.frames[1].caption.partition(";")[0]
    '0 ns: request 0 arrives'
    """
    if isinstance(subject, JoinOutcome):
        result = subject.result
        if result.parameters.strands > 1:
            raise RefusedError("subject: a join of several strands cannot be watched")
        setting, parameters = result.setting, result.parameters
        algorithm = partial(plan, setting.algorithm, *result.files, parameters, result.allocation)
        with activity("watching the join"):
            title = f"Memory of {subject.title.partition(',')[0]}"
            return memory_in_steps(title, algorithm, result.files, setting.memory, result.allocation, parameters.fudge)
    if not isinstance(subject, LabDrive):
        raise InvalidParameterError("subject", type(subject).__name__, "it must be a drive of fs.tiny_drive or a result of fs.join")
    view = choice(*_VIEWS)(text(view, "view"), "view")
    pages = [count(page, "writes", 0) for page in (writes if hasattr(writes, "__iter__") else [writes])]
    if subject.pending:
        raise RefusedError(f"subject: {len(subject.pending)} flash operations of its last plan are pending (step)")
    with activity("watching the drive"):
        return _VIEWS[view](subject.state, pages)

"""A small flash drive in virtual time, event by event: its blocks with what waits for its dies, or the work of its parts over time."""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from flashsim.apps.watching.flash_drawing import MOST_NUMBERED
from flashsim.apps.watching.steps import MOST_STEPS, Frame, Shape, Steps, label, legend
from flashsim.core.errors import InvalidParameterError
from flashsim.core.spans import CAUSES, KINDS, server_names
from flashsim.core.units import MICROSECONDS, format_duration
from flashsim.ssd.lab.clock import SteppedDrive
from flashsim.ssd.lab.drive import PAGE_NAMES, block_letters, logical_pages, page_states, pool_name
from flashsim.ssd.state.drive_state import DriveState
from flashsim.ssd.state.flash_array import ERASE_BLOCK, FETCH_PAGE, MOVE_PAGE, READ_PAGE

#: Kinds of rectangles of flash pages by state, and of operations.
_PAGES = ("free", "valid", "invalid", "coming", "torn")
_WORK = {"read": "read", "program": "program", "move": "move", "erase": "erase"}
_COLUMN, _PAGE, _LEFT, _WIDTH = 24, 11, 70, 760


@dataclass
class Hold:
    """The time for which one operation, or the bytes of one, holds a part of a drive; `end` is -1 while it does.

    `server` is the part, as `flashsim.core.spans.server_names` numbers them, and `kind` the rectangle's that shows it.
    """

    server: int
    kind: str
    text: str
    begin: int
    end: int = -1


class _Watch:
    """Holds of a drive's parts, noted after every event."""

    def __init__(self, drive: SteppedDrive) -> None:
        self.drive, self.model = drive, drive.model
        self.names = server_names(len(self.model.dies), len(self.model.channels))
        self.holds: list[Hold] = []
        self._current: dict[tuple[int, Any], Hold] = {}

    def note(self) -> None:
        now, users = int(self.model.now), self._users()
        for each in [each for each in self._current if each not in users]:
            self._current.pop(each).end = now
        for each, (kind, text) in users.items():
            if each not in self._current:
                hold = self._current[each] = Hold(each[0], kind, text, now)
                self.holds.append(hold)

    def _users(self) -> dict[tuple[int, Any], tuple[str, str]]:
        """Kind and words of what holds each part, by the part and what holds it: objects of the model, alike as long as they hold it."""
        model = self.model
        users: dict[tuple[int, Any], tuple[str, str]] = {}
        for die in model.dies:
            for operation in die.at_work[:1]:
                users[die.number, operation] = kind_of(operation.kind), words(operation, self.drive.parameters.slots_per_block)
        for number, server in enumerate((*model.channels, model.link, model.controller), len(model.dies)):
            for user in server.users:
                users[number, user] = "transfer", f"{self.names[number]} busy"
        return users


def kind_of(kind: int) -> str:
    """The kind of rectangle of a flash operation."""
    return "read" if kind in (READ_PAGE, FETCH_PAGE) else "erase" if kind == ERASE_BLOCK else "move" if kind == MOVE_PAGE else "program"


def words(operation: Any, pages_per_block: int) -> str:
    """One flash operation in words."""
    cause, place = CAUSES[operation.cause], operation.place
    if operation.kind == ERASE_BLOCK:
        return f"erase block {place} ({cause})"
    name = {kind_of(READ_PAGE): "read", "move": "move to"}.get(kind_of(operation.kind), "program")
    at = f"block {place // pages_per_block} page {place % pages_per_block}"
    return f"{name} {at}: logical page {operation.logical} ({cause})"


def _begin(state: DriveState, writes: Iterable[int]) -> SteppedDrive:
    """A drive in a copy of a state, to which single pages are written, all at once."""
    if len(state.spare) > MOST_NUMBERED * state.parameters.pools:
        raise InvalidParameterError("flash pages", len(state.spare), f"planes of at most {MOST_NUMBERED} can be watched")
    drive = SteppedDrive.in_state(deepcopy(state))
    for page in writes:
        if not 0 <= page < state.parameters.logical_pages:
            raise InvalidParameterError("page", page, f"the drive has logical pages 0 to {state.parameters.logical_pages - 1}")
        drive.write(int(page))
    return drive


def blocks_in_steps(state: DriveState, writes: Iterable[int]) -> Steps:
    """Every flash page by its state, and what is at work and waits at each die, after each event of some writes.

    `state` is the drive before them, which is left as it is; the logical pages of `writes` are written at the same time, as many at once as
    the drive's queue is deep.  Pages that there are not, too large a drive and too many events are an InvalidParameterError.
    """
    drive = _begin(state, writes)
    frames = [Frame(_caption("before", drive), _blocks(drive))]
    while line := drive.step():
        frames.append(Frame(_caption(line, drive), _blocks(drive)))
        _check_number(frames)
    height = _legend(drive)[-1].y + 18 + _pool_height(drive) * drive.parameters.pools
    return Steps(f"A drive of {len(drive.state.blocks)} blocks, event by event", (_width(drive), height), frames, len(frames) // 2)


def _check_number(frames: Sequence[Any]) -> None:
    if len(frames) > MOST_STEPS:
        raise InvalidParameterError("writes", f"more than {MOST_STEPS} events", "a picture has no more steps; write fewer pages")


def _caption(line: str, drive: SteppedDrive) -> str:
    host = drive.model.host
    waiting = sum(len(queue.waiting) for queue in host.queues)
    return f"{line}. Requests complete: {len(host.completed)}, in the drive: {len(host.open) - waiting}, waiting: {waiting}"


def _width(drive: SteppedDrive) -> float:
    return _LEFT + max(12, drive.parameters.blocks_per_plane) * _COLUMN + 10


def _legend(drive: SteppedDrive) -> list[Shape]:
    return legend(dict(zip(_PAGES, PAGE_NAMES, strict=True)) | _WORK, 8, 6, _width(drive))


def _pool_height(drive: SteppedDrive) -> float:
    return 56 + _PAGE * drive.parameters.slots_per_block


def _blocks(drive: SteppedDrive) -> list[Shape]:
    state, parameters = drive.state, drive.parameters
    states, logical, letters = page_states(state).tolist(), logical_pages(state).tolist(), block_letters(state)
    shapes, per_pool = _legend(drive), parameters.blocks_per_plane
    first = shapes[-1].y + 14
    for pool in range(parameters.pools):
        top = first + _pool_height(drive) * pool
        bottom = top + _PAGE * parameters.slots_per_block
        shapes.append(label(4, top + 12, pool_name(state, pool)))
        for column, block in enumerate(range(pool * per_pool, (pool + 1) * per_pool)):
            x = _LEFT + column * _COLUMN
            for page, (standing, number) in enumerate(zip(states[block], logical[block], strict=True)):
                held = f", logical page {number}" if number >= 0 else ""
                text = f"block {block} page {page}: {PAGE_NAMES[standing]}{held}"
                shapes.append(Shape(x, bottom - (page + 1) * _PAGE, _COLUMN - 5, _PAGE, _PAGES[standing], text))
            shapes.append(label(x + 6, bottom + 11, letters[block]))
        if pool % parameters.planes_per_die == 0:
            shapes += _queue(drive, pool // parameters.planes_per_die, bottom + 18)
    return shapes


def _queue(drive: SteppedDrive, number: int, y: float) -> list[Shape]:
    """What a die does and what waits for it, in order, as far as there is room."""
    die, x = drive.model.dies[number], float(_LEFT)
    shapes = [label(4, y + 12, "at work")]
    for operation in [*die.at_work, *die.suspended]:
        shapes.append(Shape(x, y, 40, 15, kind_of(operation.kind), words(operation, drive.parameters.slots_per_block)))
        x += 44
    x = max(x, _LEFT + 44)
    waiting = [*die.reads, *die.queue]
    shapes.append(label(x, y + 12, f"waiting {len(waiting)}"))
    for place, operation in enumerate(waiting[: (max(12, drive.parameters.blocks_per_plane) * _COLUMN - 110) // 18]):
        text = words(operation, drive.parameters.slots_per_block)
        shapes.append(Shape(x + 66 + 18 * place, y, 15, 15, kind_of(operation.kind), text))
    return shapes


def timeline_in_steps(state: DriveState, writes: Iterable[int]) -> Steps:
    """`blocks_in_steps` as the work of each part over virtual time, up to each event; what the run's length hangs on has a red edge."""
    drive = _begin(state, writes)
    watch = _Watch(drive)
    watch.note()
    events = [("before", 0)]
    while line := drive.step():
        watch.note()
        events.append((line, int(drive.model.now)))
        _check_number(events)
    critical, end = critical_holds(watch.holds), max(1, events[-1][1])
    frames = []
    for line, now in events:
        current = next((hold for hold in critical if hold.begin <= now < hold.end), None)
        caption = line if current is None else f"{line}. Critical: {watch.names[current.server]}, {current.text}"
        frames.append(Frame(caption, _bars(watch, critical, now, end)))
    title = f"The work of {len(watch.names)} parts of a drive in {format_duration(end)}"
    return Steps(title, (_WIDTH + 100, 66 + 24 * len(watch.names)), frames)


def critical_holds(holds: Sequence[Hold]) -> list[Hold]:
    """Holds, each begun when the one before it ended, back from the last to end: the whole run's length hangs on them.

    Of several that ended at that moment it is the one of the same part, which was waited for, and otherwise the longest.
    """
    path: list[Hold] = []
    last = max(holds, key=lambda hold: hold.end, default=None)
    while last is not None:
        path.append(last)
        before = [hold for hold in holds if hold.end == last.begin and hold.begin < hold.end]
        last = max(before, key=lambda hold: (hold.server == path[-1].server, hold.end - hold.begin), default=None)
    return path[::-1]


def _bars(watch: _Watch, critical: Sequence[Hold], now: int, end: int) -> list[Shape]:
    bottom, scale = 34 + 24 * len(watch.names), _WIDTH / end
    shapes = legend(_WORK | {"transfer": KINDS[5], "critical": "critical"}, 8, 6)
    shapes += [label(4, 46 + 24 * number, name) for number, name in enumerate(watch.names)]
    shapes += [label(80 + _WIDTH * tenth / 10, bottom + 26, f"{end * tenth / 10 / MICROSECONDS:,.0f}") for tenth in range(0, 10, 2)]
    shapes += [
        label(80 + _WIDTH - 22, bottom + 26, "time (µs)"),
        Shape(80 + now * scale, 28, 1, bottom - 24, "frame", format_duration(now)),
    ]
    for hold in watch.holds:
        if hold.begin <= now:
            until = min(hold.end, now)
            text = f"{watch.names[hold.server]}: {hold.text}, {format_duration(hold.begin)} to {format_duration(hold.end)}"
            box = (80 + hold.begin * scale, 33 + 24 * hold.server, (until - hold.begin) * scale, 18)
            shapes.append(Shape(*box, hold.kind, text))
            if any(hold is each for each in critical):
                shapes.append(Shape(*box, "critical", f"critical: {text}"))
    return shapes

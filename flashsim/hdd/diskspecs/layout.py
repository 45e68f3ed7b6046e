"""The layout of a drive's sectors: DiskSim's ``dm_layout_g1`` in the words of `flashsim.hdd.state.layout`."""

from flashsim.core.errors import InvalidParameterError
from flashsim.hdd.description import HEAD_ORDERS, SPARING
from flashsim.hdd.diskspecs.block import Block
from flashsim.hdd.diskspecs.collected import Collected

#: More cylinders are no drive's.
_MOST_CYLINDERS = 10_000_000


def collect(model: Block, found: Collected) -> None:
    """Take the layout of a ``dm_disk`` block."""
    layout = model.child("Layout Model", "dm_layout_g1")
    scheme = layout.whole("Sparing scheme used", least=0, most=len(SPARING) - 1)
    order = layout.whole("LBN-to-PBN mapping scheme", least=0, most=len(HEAD_ORDERS) - 1)
    zones = layout.children("Zones", "dm_layout_g1_zone")
    rows, slips, defects = [], [], []
    behind = 0  # the cylinder behind the last zone
    for number, zone in enumerate(zones):
        row, behind = _zone(zone, behind, scheme == 0)
        rows.append(row)
        slips += [[number, place] for place in dict.fromkeys(_places(zone, "slips"))]  # some files name one twice
        pairs = _places(zone, "defects")
        if len(pairs) % 2:
            raise InvalidParameterError(f"{zone.at}: defects", f"{len(pairs)} numbers", "they must be pairs: a defect, its replacement")
        defects += [[number, *pair] for pair in zip(pairs[::2], pairs[1::2], strict=True) if pair[0] != pair[1]]
        zone.refuse_unread()
    found.put("zones", rows, layout.place("Zones"))
    found.put("sparing", SPARING[scheme], layout.place("Sparing scheme used"))
    found.put("sparing_range", layout.whole("Rangesize for sparing", 1, least=1), layout.place("Rangesize for sparing"))
    found.put("head_order", HEAD_ORDERS[order], layout.place("LBN-to-PBN mapping scheme"))
    if slips and not scheme:
        found.notes.append(f"{layout.place('Sparing scheme used')} = 0: without spares there are no slips, and those listed are ignored")
        slips = []
    for name, table in (("slips", slips), ("defects", defects)):
        if table:
            found.put(name, table, f"{layout.place('Zones')}, {name}")
    layout.refuse_unread()


def _zone(zone: Block, behind: int, unspared: bool) -> tuple[list[float], int]:
    """A row of `flashsim.hdd.parameters.HddParameters.zones`, and the cylinder behind the zone."""
    first, last = (zone.whole(f"{which} cylinder number", None, 0, _MOST_CYLINDERS) for which in ("First", "Last"))
    if first < behind or last < first:
        raise InvalidParameterError(f"{zone.at}: cylinders", f"{first} to {last}", f"zones must ascend, and {behind} is the next free one")
    per_track = zone.whole("Blocks per track", least=1)
    skews = [zone.number(key, 0.0) % per_track for key in ("Skew for track switch", "Skew for cylinder switch", "Offset of first block")]
    empty = zone.whole("Empty space at zone front", 0, least=0)
    spares = zone.whole("Number of spares", 0, least=0)
    return [last - first + 1, per_track, *map(_plain, skews), empty, 0 if unspared else spares, first - behind], last + 1


def _plain(value: float) -> float:
    return int(value) if value == int(value) else value


def _places(zone: Block, key: str) -> list[int]:
    places = zone.numbers(key, ())
    for place in places:
        if place < 0 or place != int(place):
            raise InvalidParameterError(f"{zone.entries[key].at}: {key}", place, "it must be a whole number of at least 0")
    return [int(place) for place in places]

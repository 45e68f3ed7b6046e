"""Mechanisms of a flash drive, and the changes that make each ideal."""

from flashsim.core.mechanisms import DeviceMechanism
from flashsim.ssd.parameters import SsdParameters

#: Commands of a queue that does not fill.
_DEEP = 1 << 16


def mechanisms_of(drive: SsdParameters) -> list[DeviceMechanism]:
    """The mechanisms that a drive has."""
    # commands that enter at once, one of each queue, would each hold a page of so small a buffer, and wait for another
    is_shared = not 0 < drive.buffer_pages <= drive.queues
    merges = drive.log_blocks > 0 or drive.ftl == "block"
    every = [
        (True, _wait("dies", "waiting for dies", "operations wait for dies that are busy")),
        (True, _wait("channels", "waiting for channels", "pages wait for flash channels that are busy")),
        (is_shared, _wait("controller", "waiting for the controller", "commands wait for the controller")),
        (
            drive.one_shot,
            DeviceMechanism(
                "word_lines", "pages of a word line", "consecutive pages lie in one word line, and so on one die", ideal="word_lines",
                decides="where loaded pages lie",
            ),
        ),
        (
            drive.gc != "none",
            DeviceMechanism("collection", "garbage collection", "requests wait for garbage collection", ideal="collection"),
        ),
        (merges, DeviceMechanism("merges", "log merges", "requests wait for merges of log blocks", ideal="merges")),
        (drive.map_cache > 0, DeviceMechanism("map", "map on flash", "requests wait for translation pages", ideal="map")),
        (drive.wear == "static", DeviceMechanism("wear", "wear levelling", "requests wait for wear levelling", ideal="wear")),
        (
            drive.slc_cache > 0,
            DeviceMechanism("folding", "folding of the SLC cache", "requests wait for pages that leave the SLC cache", ideal="folding"),
        ),
        (
            drive.retries,
            DeviceMechanism(
                "retries", "read retries", "pages are read more than once",
                {"read_retry": 0.0, "read_retry_growth": 0.0, "read_retry_time": 0},
            ),
        ),
        (
            drive.collection_rate > 0,
            DeviceMechanism(
                "pace", "pace of writes", "writes are acknowledged at a pace while the drive collects",
                {"collection_rate": 0, "collection_debt": 0, "collection_floor": 0, "collection_share": 1.0},
            ),
        ),
        (
            True,
            DeviceMechanism(
                "slots", "command slots", "commands wait for a slot",
                {"queue_depth": _DEEP} | ({"command_slots": 0, "command_slot": 4096, "slot_order": "turns"} if drive.command_slots else {}),
                is_wait=True,
            ),
        ),
    ]  # fmt: skip
    return [mechanism for has, mechanism in every if has]


def _wait(server: str, title: str, sentence: str) -> DeviceMechanism:
    return DeviceMechanism(server, title, sentence, ideal=server, is_wait=True)

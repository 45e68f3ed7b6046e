"""Machine on which an algorithm runs in virtual time: devices, a CPU, and observers of requests."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from flashsim.core.errors import InvalidParameterError, RefusedError, option
from flashsim.core.protocols import RunObserver, Sink
from flashsim.core.units import format_size
from flashsim.device.device import Device
from flashsim.execution.cpu import CpuModel
from flashsim.storage.heap_file import HeapFile
from flashsim.storage.volume import Volume


@dataclass
class Machine:
    """Devices, a CPU and a recorder that see the same requests."""

    devices: Sequence[Device]  #: As many as the volume has.
    cpu: CpuModel | None = None  #: Prices of CPU work; without it, CPU work takes no time.
    #: Is handed every request with its completion.
    sink: Sink | None = None
    name: str = ""
    start: int = 0  #: Bytes from a device's begin to the volume's.
    full: bool = False  #: Whether the devices hold data wherever the volume lies: base relations then need not be loaded.
    #: That of devices which are miniatures; of several machines that of the first counts.
    scale: float = 1.0
    #: Is handed requests and completions phase by phase; of serial algorithms alone.
    observer: RunObserver | None = None
    now: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.name = self.name or "+".join(device.name for device in self.devices)


def load(files: Sequence[HeapFile], machines: Sequence[Machine], placement: str) -> Volume:
    """Place base relations, and mark them as written on every machine's devices.

    Raises CapacityError: the smallest machine's devices cannot hold the relations; RefusedError: machines have devices of different zones;
    InvalidParameterError: pages are not multiples of what a zoned drive writes at least.
    """
    for device in (device for machine in machines for device in machine.devices if device.zone_size):
        grain = device.zones.grain
        if ragged := [file.page_size for file in files if file.page_size % grain]:
            bound = f"{device.name} is zoned, and writes {format_size(grain)} at least: "
            least = option("page-size") + f" {format_size(grain).replace(' ', '')}"
            raise InvalidParameterError("page_size", format_size(ragged[0]), bound + least)
    rooms = ([device.capacity - machine.start for device in machine.devices] for machine in machines)
    zones = [{device.zone_size for device in devices} for devices in zip(*(machine.devices for machine in machines), strict=True)]
    if any(len(sizes) > 1 for sizes in zones):
        raise RefusedError("devices: their zones differ, so that files cannot lie alike on them")
    capacities = [min(sizes) for sizes in zip(*rooms, strict=True)]
    volume = Volume(capacities, placement, machines[0].scale, [sizes.pop() for sizes in zones])
    for file in files:
        extents = volume.add(file)
        for machine in (machine for machine in machines if not machine.full):
            for offset, length in zip(extents.offsets.tolist(), extents.lengths.tolist(), strict=True):
                machine.devices[extents.device].load(machine.start + offset, length)
    return volume

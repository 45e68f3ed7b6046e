"""Device maps that placements share."""

from flashsim.storage.placement.base import DeviceMap

#: All files on one device.
ONE_DEVICE = DeviceMap(1, lambda file: 0)
#: Base relations on the first device, temporary files on the second.
RELATIONS_AND_TEMPORARIES = DeviceMap(2, lambda file: int(file.temporary))

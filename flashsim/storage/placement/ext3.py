"""Packed, with what the ext3 file system puts between the blocks of a file and writes beside them.

A file's blocks of 4 KiB are mapped by indirect blocks of 1,024 entries, each of which lies just before the data that it maps: a hole of 4
KiB in every 4 MiB.  (The twelve blocks that the inode itself maps, and the few blocks that map indirect blocks, are left out.)  Changed
metadata goes to the journal, in one run with a descriptor and a commit block, and then to its place.  ext3 does so every five seconds;
here it does so every 250 MB of data, five seconds at 50 MB/s, so that a run is the same on fast and slow devices.

Source: S. Tweedie, "Journaling the Linux ext2fs Filesystem", LinuxExpo 1998; block map and journal of Linux 2.6.
"""

from flashsim.storage.placement._ext3 import FileSystem
from flashsim.storage.placement.base import ONE_DEVICE as DEVICE_MAP

__all__ = ["DEVICE_MAP", "FileSystem"]

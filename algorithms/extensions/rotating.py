"""Rotating SSD: whatever leaves memory goes to the next frame of the SSD, so that it is written in sequence, round and round.

The page in that frame is replaced however often it was read.  If it is newer than on disk it is written there before: here by the cleaner,
which goes ahead of the frame that is next; a page that comes while that has not been done goes to the disk.  A frame that is being read is
passed over.  Source: Holloway, "Adapting database storage for new hardware", thesis, Wisconsin-Madison, 2009 (whose abstract says that
pages are written in sequence alone), as Do, 2012, 3.5 tells it.
"""

from algorithms.extensions._flows import give_up, nothing, write_back
from flashsim.storage.extension.manager import turn_of

TITLE = "rotating SSD"
WRITE_BACK = ROTATES = True
on_evict, on_fetch, on_serve, on_modify, key = write_back, nothing, nothing, give_up, turn_of

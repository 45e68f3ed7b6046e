"""A small drive of nobody's, written in DiskSim's format with all that makes the format awkward."""

from __future__ import annotations

from pathlib import Path

PARV = """\
disksim_global Global {
Init Seed = 42,
Stat definition file = statdefs
}
disksim_bus BUS0 { type = 1, Arbitration time = 0.0,
Read block transfer time = 0.0, Write block transfer time = 0.0 } # the host's side
disksim_bus BUS1 {
type = 1,
Read block transfer time = 0.1,
Write block transfer time = 0.2,
}
disksim_ctlr CTLR0 { type = 1 }
# the drive
source small.diskspecs
instantiate [ statfoo ] as Stats
instantiate [bus0 ] as  BUS0
instantiate [ bus1 .. bus2 ] as BUS1
instantiate [ disk0 .. disk1 ] as SMALL_ST-1.x
instantiate [ ctlr0 ] as CTLR0
topology disksim_iodriver driver0 [
   disksim_bus bus0 [
      disksim_ctlr ctlr0 [ disksim_bus bus1 [ disksim_disk disk0 [], disksim_disk disk1 [] ] ] # end of ctlr0
   ]
]
disksim_synthio Synthio {
Generators = [ disksim_synthgen { devices = [ disk0 ], Sizes = [ exponential, 0.0, 8.0 ] } ] # end of generators
}
"""

DISKSPECS = """\
disksim_disk SMALL_ST-1.x {
   Model = source small.model,
   Per-request overhead time = 0.000000,
   Time scale for overheads = 1.000000,
   Bulk sector transfer time = 0.05,
   Hold bus entire read xfer = 1,
   Hold bus entire write xfer = 0,
   Allow almost read hits = 0,
   Allow sneaky full read hits = 0,
   Allow sneaky partial read hits = 0,
   Allow sneaky intermediate read hits = 0,
   Allow read hits on write data = 0,
   Allow write prebuffering = 0,
   Preseeking level = 0,
   Never disconnect = 0,
   Print stats = 1,
   Avg sectors per cylinder = 40,
   Max queue length = 4,
   Scheduler = disksim_ioqueue {
      Scheduling policy = 8,
      Cylinder mapping strategy = 0,
      Timeout time/weight = 0
   },
   Number of buffer segments = 3,
   Maximum number of write segments = 1,
   Segment size (in blks) = 32,
   Use separate write segment = 1,
   Low (write) water mark = 0.25,
   High (read) water mark = 0.5,
   Set watermark by reqsize = 1,
   Enable caching in buffer = 1,
   Buffer continuous read = 3,
   Minimum read-ahead (blks) = 0,
   Maximum read-ahead (blks) = 16,
   Read-ahead over requested = 1,
   Read-ahead on idle hit = 1,
   Read any free blocks = 0,
   Fast write level = 0,
   Read hit over. after read = 0.1,
   Read hit over. after write = 0.2,
   Read miss over. after read = 0.3,
   Read miss over. after write = 0.4,
   Write hit over. after read = 0.5,
   Write hit over. after write = 0.6,
   Write miss over. after read = 0.7,
   Write miss over. after write = 0.8,
   Read completion overhead = 0.15,
   Write completion overhead = 0.25
} # end of the drive
"""

MODEL = """\
dm_disk SMALL_model {
   Number of data surfaces = 2,
   Number of cylinders = 7,
   Block count = 999,  # wrong, as it may be
   Mechanical Model = dm_mech_g1 {
      Access time type = trackSwitchPlusRotation,
      Seek type = extracted,
      Full seek curve = small.seek,
#      First ten seek times = [ 1.0 ],
      Add. write settling delay = -0.25,
      Head switch time = 0.5,
      Rotation speed (in rpms) = 6000,
      Percent error in rpms = 0.0
   },
   Layout Model = dm_layout_g1 {
      LBN-to-PBN mapping scheme = 0,
      Sparing scheme used = 1,
      Rangesize for sparing = 1,
      Zones = [
         dm_layout_g1_zone { # band 0
            First cylinder number = 0,
            Last cylinder number = 3,
            Blocks per track = 20,
            Offset of first block = 22.000000,
            Empty space at zone front = 20,
            Skew for track switch = 3.500000,
            Skew for cylinder switch = 5.000000,
            Number of spares = 2,
            slips =
               [ 3   ],
            defects = [    ]
         },
         dm_layout_g1_zone {
            First cylinder number = 5,
            Last cylinder number = 6,
            Blocks per track = 10,
            Offset of first block = 0,
            Empty space at zone front = 0,
            Skew for track switch = 1,
            Skew for cylinder switch = 2,
            Number of spares = 1,
            slips = [],
            defects = [ 1, 3 ]
         }
      ] # Zones
   }
}
"""

SEEK = """\
Seek distances measured: 3
1,\t1.00000
2,  2.0
6,      4.000000000
"""


def write_drive(folder: Path, **changes: tuple[str, str]) -> Path:
    """Write the drive's files into a folder, some texts replaced: ``parv=(old, new)``; return the path of the .parv file."""
    for name, text in (("parv", PARV), ("diskspecs", DISKSPECS), ("model", MODEL), ("seek", SEEK)):
        old, new = changes.pop(name, ("", ""))
        assert old in text, old
        (folder / f"small.{name}").write_text(text.replace(old, new, 1) if old else text, encoding="utf-8")
    assert not changes
    return folder / "small.parv"

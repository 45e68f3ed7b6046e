"""``flashsim device import-diskspecs``: the preset of a hard disk that is described for DiskSim."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from flashsim.apps.calibration.face._preset_file import preset_file
from flashsim.core.preset_files import as_toml
from flashsim.core.request import SECTOR
from flashsim.device import presets
from flashsim.hdd.diskspecs import drive as diskspecs
from flashsim.operations.fields import Field, Name, Target
from flashsim.operations.operation import operation
from flashsim.operations.outcome import Listing


@operation
def device_import_diskspecs(
    file: Annotated[
        str,
        Name(
            "A DiskSim parameter file; files that it includes are read too.",
            "FILE.parv",
            argument=True,
            reads=lambda values: diskspecs.read(Path(values["file"]), values["disk"]).files,
        ),
    ],
    *,
    out: Annotated[Any, Target("Target file of the preset.", "PRESET.toml")],
    disk: Annotated[str | None, Field("Name of the drive, if the file describes several.", "NAME")] = None,
) -> Listing:
    """Create a disk preset from DiskSim files.

    Every value cites the file and line of its source.

    What the model does otherwise than the files say is printed, and stands in the preset as a comment.

    Examples::

        flashsim device import-diskspecs drive.parv --out drive.toml
        flashsim device import-diskspecs drive.parv --out mine.toml --disk MY_DISK --json mine.json

    Examples
    --------
    >>> import flashsim as fs
    >>> fs.device_import_diskspecs("drive.parv", out="drive.toml")  # doctest: +SKIP
    """
    target = preset_file(out)
    drive = diskspecs.read(Path(file), disk)
    document = drive.document(Path(target).stem)
    preset = presets.from_document(document, Path(file))
    out.write_text(as_toml(document, drive.notes), encoding="utf-8")
    blocks = preset.capacity // SECTOR
    lead = f"{drive.name}: {blocks:,} blocks, {len(drive.values['zones'])} zones; {len(drive.values)} values in {target}"
    result = document | {"notes": list(drive.notes), "files": [str(path) for path in drive.files]}
    return Listing([lead, *(f"note: {note}" for note in drive.notes)], [{"note": note} for note in drive.notes], result)

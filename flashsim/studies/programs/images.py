"""Images of files in folders, which a check looks at."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from flashsim.core.errors import CapacityError
from flashsim.core.units import GIB, format_size

#: Environment variable of a check: a file with what the program had printed by the cut.
PRINTED = "FLASHSIM_PRINTED"
#: Bytes of a folder of which images are made at most.
_MOST = GIB
#: Time of the last change, ns, of files that nobody has changed since they were written here.
_UNCHANGED = 10**18


def snapshot(folder: Path) -> dict[str, bytes]:
    """Files and folders below a folder, by path; paths of folders end in a slash.

    Raises
    ------
    CapacityError
        They are too large.
    """
    paths = [path for path in sorted(folder.rglob("*")) if not path.is_symlink()]
    files = [path for path in paths if path.is_file()]
    if (size := sum(path.stat().st_size for path in files)) > _MOST:
        raise CapacityError(f"folder: {folder} holds {format_size(size)}, but power is cut in folders of {format_size(_MOST)} at most")
    return {f"{path}/": b"" for path in paths if path.is_dir()} | {str(path): path.read_bytes() for path in files}


class ImageFolder:
    """A folder that shows one image after the other; only what differs, or was changed by a check, is written.

    Parameters
    ----------
    place, number
        Where the folder is, beside others, and which of them it is.
    """

    def __init__(self, place: Path, number: int) -> None:
        self.root, self._printed = place / f"files-{number}", place / f"printed-{number}"
        self.root.mkdir()
        self._written: dict[str, bytes] = {}

    def look(self, image: Mapping[str, bytes], printed: bytes, check: str, limit: float) -> tuple[int, str]:
        """The exit code of a check on an image, and its output.

        Parameters
        ----------
        image
            Files by path within the folder, and folders by paths that end in a slash.
        limit
            Seconds that the check may take.
        """
        self._show(image)
        self._printed.write_bytes(printed)
        with subprocess.Popen(
            check,
            shell=True,
            cwd=self.root,
            env=os.environ | {PRINTED: str(self._printed)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            errors="replace",
            process_group=0,
        ) as process:
            try:
                output, _ = process.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return 1, f"the check took longer than {limit:g} s"
        return process.returncode, output

    def _show(self, image: Mapping[str, bytes]) -> None:
        folders = {str(parent) for path in {os.path.dirname(path) for path in image} for parent in (Path(path), *Path(path).parents)}
        present = set(self._present(image, folders))
        for path in image.keys() - present:
            target = self.root / path
            (target if path.endswith("/") else target.parent).mkdir(parents=True, exist_ok=True)
            if not path.endswith("/"):
                target.write_bytes(image[path])
                os.utime(target, ns=(_UNCHANGED, _UNCHANGED))
        self._written = dict(image)

    def _present(self, image: Mapping[str, bytes], folders: set[str]) -> Iterator[str]:
        """Paths that are as an image has them; what the image does not have is removed."""
        for place, below, names in os.walk(self.root, topdown=False):
            prefix = "" if place == str(self.root) else os.path.relpath(place, self.root) + "/"
            for name in names:
                path, full = prefix + name, os.path.join(place, name)
                if path not in image:
                    os.unlink(full)
                elif self._written.get(path) == image[path] and os.lstat(full).st_mtime_ns == _UNCHANGED:
                    yield path
            for name in below:
                if os.path.islink(os.path.join(place, name)):
                    os.unlink(os.path.join(place, name))
                elif prefix + name not in folders:
                    shutil.rmtree(os.path.join(place, name))

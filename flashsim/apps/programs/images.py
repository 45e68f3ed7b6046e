"""Images of files in folders, which a check looks at, and which files it looks at: ``strace`` watches it once."""

import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from flashsim.core.errors import CapacityError, RefusedError
from flashsim.core.units import GIB, format_size
from traces.calls.strace import OPTIONS
from traces.calls.syntax import unhex

#: Environment variable of a check: a file with what the program had printed by the cut.
PRINTED = "FLASHSIM_PRINTED"
#: End of the path of a symbolic link, whose content is its target.
LINK = "//"
#: Bytes of a folder of which images are made at most.
_MOST = GIB
#: Files and folders, likewise.
_MOST_FILES = 100_000
#: Time of the last change, ns, of files that nobody has changed since they were written here.
_UNCHANGED = 10**18
_HEX = r"(?:\\x[0-9a-f]{2})*"
#: A name in a call, with the folder that it begins in, if a descriptor says that; and what a descriptor stands for.
_NAME = re.compile(rf'(?:<({_HEX})>, )?"({_HEX})"')
_DESCRIPTOR = re.compile(rf"<({_HEX})>")


def snapshot(folder: Path) -> dict[str, bytes]:
    """Files, folders and symbolic links below a folder, by path; paths of folders end in a slash, and those of links in two.

    Raises
    ------
    CapacityError, RefusedError
        They are too large or too many, or belong to several file systems.
    """
    everything = sorted(_below(folder))
    paths = [path for path in everything if not path.is_symlink()]
    files = [path for path in paths if path.is_file()]
    links = {f"{path}{LINK}": os.fsencode(os.readlink(path)) for path in everything if path.is_symlink()}
    if (size := sum(path.stat().st_size for path in files)) > _MOST:
        raise CapacityError(f"folder: {folder} holds {format_size(size)}, but power is cut in folders of {format_size(_MOST)} at most")
    return {f"{path}/": b"" for path in paths if path.is_dir()} | {str(path): path.read_bytes() for path in files} | links


def _below(folder: Path) -> Iterator[Path]:
    device = folder.stat().st_dev
    for count, path in enumerate(Path(place, name) for place, folders, files in os.walk(folder) for name in folders + files):
        if count == _MOST_FILES:
            raise CapacityError(f"folder: {folder} holds more files than the {_MOST_FILES:,} at most whose images are made")
        try:
            own = path.lstat().st_dev == device
        except FileNotFoundError:
            raise RefusedError(
                f"folder: {folder} holds files that come and go, such as {path}; name a folder of the program's own"
            ) from None
        if not own:
            raise RefusedError(f"folder: {folder} holds another file system, {path}; name a folder of the program's own")
        yield path


def modes(folder: Path) -> dict[str, int]:
    """Permissions of the files below a folder, by path within it."""
    paths = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(folder)): path.stat().st_mode & 0o777 for path in paths}


def difference(image: Mapping[str, bytes], other: Mapping[str, bytes]) -> tuple[str, str, str] | None:
    """The first path, of two images, that is not the same thing in both, and what it is in each; None if there is none."""
    for path in sorted({*image, *other}, key=lambda each: each.rstrip("/")):
        if (ours := image.get(path)) != (theirs := other.get(path)):
            name = path.rstrip("/")
            if ours is None or theirs is None or len(ours) != len(theirs):
                return name, _words(image, name), _words(other, name)
            place = next(place for place, (one, two) in enumerate(zip(ours, theirs, strict=True)) if one != two)
            return name, _words(image, name), f"{_words(other, name)} with other bytes from {place:,} on"
    return None


def _words(image: Mapping[str, bytes], path: str) -> str:
    if path in image:
        return f"a file of {len(image[path]):,} B"
    if f"{path}{LINK}" in image:
        return f"a link to {os.fsdecode(image[f'{path}{LINK}'])}"
    return "a folder" if f"{path}/" in image else "nothing"


class ImageFolder:
    """A folder, beside others by its number, that shows one image after the other; only what differs, or a check changed, is written.

    `modes` are permissions of files by path within the folder; others are new files.
    """

    def __init__(self, place: Path, number: int, modes: Mapping[str, int] | None = None) -> None:
        self.root = place / f"files-{number}"
        #: Files with what the program had printed, and with what the check prints.
        self.printed, self.output = place / f"printed-{number}", place / f"output-{number}"
        self.root.mkdir()
        self._written: dict[str, bytes] = {}
        self._modes = modes or {}

    def look(self, image: Mapping[str, bytes], printed: bytes, check: str, limit: float) -> tuple[int, str]:
        """The exit code of a check on an image, and its output, with the folder's path as ``.``; it may take `limit` seconds."""
        self.show(image, printed)
        with (
            self.output.open("w+", errors="replace") as output,
            subprocess.Popen(
                check,
                shell=True,
                cwd=self.root,
                env=os.environ | {PRINTED: str(self.printed)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                process_group=0,
            ) as process,
        ):
            try:
                code = process.wait(limit)
            except subprocess.TimeoutExpired:
                return 1, f"the check took longer than {limit:g} s"
            finally:
                # What the shell has begun in the background ends with it.
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            output.seek(0)
            return code, output.read().replace(str(self.root), ".")

    def show(self, image: Mapping[str, bytes], printed: bytes) -> None:
        """Make the folder hold an image, and the file beside it what was printed.

        An image has files by path within the folder, folders by paths that end in a slash, and symbolic links by paths that end in two.
        """
        self.printed.write_bytes(printed)
        places = {os.path.dirname(path.removesuffix(LINK)) for path in image}
        folders = {str(parent) for path in places for parent in (Path(path), *Path(path).parents)}
        present = set(self._present(image, folders))
        for path in image.keys() - present:
            target = self.root / path
            (target if path.endswith("/") and not path.endswith(LINK) else target.parent).mkdir(parents=True, exist_ok=True)
            if path.endswith(LINK):
                os.symlink(os.fsdecode(image[path]), target)
            elif not path.endswith("/"):
                target.write_bytes(image[path])
                target.chmod(self._modes.get(path, target.stat().st_mode))
                os.utime(target, ns=(_UNCHANGED, _UNCHANGED))
        self._written = dict(image)

    def _present(self, image: Mapping[str, bytes], folders: set[str]) -> Iterator[str]:
        """Paths that are as an image has them; what the image does not have is removed."""
        for place, below, names in os.walk(self.root, topdown=False):
            prefix = "" if place == str(self.root) else os.path.relpath(place, self.root) + "/"
            for name in [*names, *below]:
                path, full = prefix + name, os.path.join(place, name)
                if os.path.islink(full):
                    if image.get(path + LINK) == os.fsencode(os.readlink(full)):
                        yield path + LINK
                    else:
                        os.unlink(full)
                elif name in below:
                    if path not in folders:
                        shutil.rmtree(full)
                elif path in image and self._written.get(path) == image[path] and self._is_as_written(path, os.lstat(full)):
                    yield path
                else:
                    os.unlink(full)

    def _is_as_written(self, path: str, now: os.stat_result) -> bool:
        mode = now.st_mode & 0o777
        return now.st_mtime_ns == _UNCHANGED and self._modes.get(path, mode) == mode


def digest(image: Mapping[str, bytes], printed: bytes) -> bytes:
    """A digest of an image and output; Python keeps the hash of bytes with them, so that files that stay are hashed once."""
    parts = [f"{path}\0{len(content)}\0{hash(content)}" for path, content in sorted(image.items())]
    return blake2b("\0".join([str(hash(printed)), *parts]).encode(errors="surrogateescape"), digest_size=16).digest()


def watch_command(check: str, log: Path) -> str:
    """A shell command that runs a check, with the check's exit code, and writes its calls that name files."""
    strace = ["strace", "-D", *OPTIONS, "-qq", "--seccomp-bpf", "-e", "trace=%file", "-o", str(log)]
    return shlex.join([*strace, "--", "sh", "-c", check])


def paths_looked_at(log: Path, folder: Path) -> set[str]:
    """Paths within a folder that a check named or opened, there or not; names that it listed are none, since Python lists where it runs."""
    named, root = set[str](), os.fsencode(os.path.realpath(folder))
    with log.open(encoding="ascii", errors="replace") as lines:
        for line in lines:
            names = _NAME.findall(line)[: 1 if "execve" in line else None]  # a program's arguments are no names yet
            paths = [unhex(text) for text in _DESCRIPTOR.findall(line)]
            paths += [os.path.join(root, unhex(place), unhex(name)) for place, name in names]
            below = (path for path in map(os.path.normpath, paths) if path.startswith(os.path.join(root, b"")))
            named.update(os.fsdecode(os.path.relpath(path, root)) for path in below)
    return named

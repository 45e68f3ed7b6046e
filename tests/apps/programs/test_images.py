"""A folder shows each image as it is, whatever checks did to the one before."""

from __future__ import annotations

from pathlib import Path

from flashsim.apps.programs.images import ImageFolder, difference, modes, snapshot
from tests.processes import end

FIRST = {"now//": b"in/deep", "far//": b"nowhere", "a": b"apples", "kept": b"k", "in/b": b"pears", "in/deep/c": b"", "empty/": b""}
CHECK = "echo changed > a; printf K > kept; rm in/b; rmdir empty; mkdir more; echo new > more/d; ln -s more link; "
CHECK += "rm far; ln -sfn more now; exit 3"


def shown(folder: ImageFolder) -> dict[str, bytes]:
    paths = {path.removeprefix(f"{folder.root}/"): content for path, content in snapshot(folder.root).items()}
    return {path: content for path, content in paths.items() if path not in ("in/", "in/deep/")}


def test_what_a_check_did_is_undone(tmp_path: Path) -> None:
    folder = ImageFolder(tmp_path, 0)
    for image in (FIRST, FIRST, {"a": b"apples", "in": b"a file where a folder was"}, FIRST, {}):
        assert folder.look(image, b"", "true", 9) == (0, "") and shown(folder) == image
        assert folder.look(image, b"", CHECK, 9)[0] == 3


def test_only_what_differs_is_written(tmp_path: Path) -> None:
    folder = ImageFolder(tmp_path, 0)
    numbers = []
    for image in (FIRST, FIRST | {"in/b": b"plums"}):
        folder.look(image, b"", "true", 9)
        numbers.append({path: (folder.root / path.rstrip("/")).lstat().st_ctime_ns for path in image})
    assert [path for path in FIRST if numbers[0][path] != numbers[1][path]] == ["in/b"]


def test_files_have_their_modes_whatever_a_check_makes_of_them(tmp_path: Path) -> None:
    folder = ImageFolder(tmp_path, 0, {"a": 0o755, "in/b": 0o400})
    for image in (FIRST, FIRST | {"in/b": b"plums"}):
        assert folder.look(image, b"", "chmod 600 a in/b; echo more >> in/b", 9) == (0, "")
        folder.look(image, b"", "true", 9)
        assert shown(folder) == image and {path: modes(folder.root)[path] for path in ("a", "in/b")} == {"a": 0o755, "in/b": 0o400}


def test_the_first_difference_of_two_images_is_told_in_words() -> None:
    assert difference(FIRST, dict(FIRST)) is None
    others = ({"a": b"apple"}, {"a": b"apPles"}, {"now//": b"in"}, {"b/": b""})
    told = [difference(FIRST, FIRST | other) for other in others]
    assert told == [
        ("a", "a file of 6 B", "a file of 5 B"),
        ("a", "a file of 6 B", "a file of 6 B with other bytes from 2 on"),
        ("now", "a link to in/deep", "a link to in"),
        ("b", "nothing", "a folder"),
    ]


#: Leaves a process in the background, and its number in a file beside the image.
BACKGROUND = "sleep 600 & echo $! > {}/left"


def ends(folder: Path) -> bool:
    """Whether the process in the background ends."""
    return end([int((folder / "left").read_text())])


def test_a_check_that_takes_too_long_ends_with_all_that_it_began(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    folder = ImageFolder(tmp_path / "images", 0)
    code, output = folder.look({}, b"", f"{BACKGROUND.format(tmp_path)}; sleep 600", 1)
    assert code == 1 and "longer than 1 s" in output and ends(tmp_path)
    assert folder.look({}, b"out", "cat $FLASHSIM_PRINTED", 60) == (0, "out")


def test_a_check_is_over_with_its_shell_and_so_is_what_it_left_in_the_background(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    folder = ImageFolder(tmp_path / "images", 0)
    assert folder.look({}, b"", f"{BACKGROUND.format(tmp_path)}; echo done; exit 3", 500) == (3, "done\n") and ends(tmp_path)

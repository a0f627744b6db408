"""Private directories and files, and the lock of a directory."""

import os
import stat

import pytest

from gateway.embedded import StartupError
from gateway.embedded.directory import DirectoryLock, owned_directory, private_directory, write_private


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_directory_is_private(place):
    private_directory(place / "data")

    assert mode_of(place / "data") == 0o700


def test_an_empty_directory_becomes_private(place):
    place.chmod(0o755)

    private_directory(place)

    assert mode_of(place) == 0o700


def test_a_directory_with_other_files_keeps_its_mode(place):
    (place / "notes.txt").touch()
    place.chmod(0o755)

    private_directory(place)

    assert mode_of(place) == 0o755


def test_a_directory_with_other_files_that_others_may_write_to_is_refused(place):
    (place / "notes.txt").touch()
    place.chmod(0o777)

    with pytest.raises(StartupError, match="Choose an empty data directory"):
        private_directory(place)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_directory_of_another_user_is_refused(place):
    os.chown(place, 12345, -1)

    with pytest.raises(StartupError, match="belongs to user id 12345"):
        owned_directory(place, service_user=None)


def test_a_link_in_place_of_a_directory_is_refused(place):
    (place / "run").symlink_to("/")

    with pytest.raises(StartupError, match="belongs to user id"):
        owned_directory(place / "run", service_user=None)


def test_a_lock_is_held_once_until_it_is_released(place):
    first, second = DirectoryLock(place), DirectoryLock(place)
    first.acquire()

    with pytest.raises(StartupError, match="in use by process"):
        second.acquire()
    first.release()
    second.acquire()

    second.release()


def test_a_private_file_is_replaced_atomically(place):
    write_private(place / "ready.json", "first, and longer")
    write_private(place / "ready.json", "second")

    assert (place / "ready.json").read_text() == "second"
    assert mode_of(place / "ready.json") == 0o600
    assert [entry.name for entry in place.iterdir()] == ["ready.json"]

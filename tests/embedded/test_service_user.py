"""Under root the servers run as a system user, wherever the gateway is installed."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from gateway.embedded import StartupError
from gateway.embedded.redis import PACKAGE
from gateway.embedded.server import installed
from gateway.embedded.service_user import Installed, ServiceUser, programs_for, service_user_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root needs another account for the servers")


@pytest.fixture
def user(place: Path) -> ServiceUser:
    made = service_user_for(place / "data")
    assert made is not None
    return made


@pytest.fixture
def private(place: Path) -> Installed:
    """The Redis wheel, installed in a directory that only root may enter, like root's home."""
    wheel = installed(PACKAGE, "")
    home = place / "home"
    home.mkdir(mode=0o700)
    shutil.copytree(wheel.site / wheel.programs, home / wheel.programs)
    return Installed(home, wheel.label, wheel.programs, wheel.libraries)


def run_as(user: ServiceUser, program: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, "--version"], user=user.uid, group=user.gid, capture_output=True, text=True, cwd="/"
    )


def test_programs_that_the_user_cannot_read_are_copied_to_where_it_can(place: Path, user: ServiceUser, private):
    place.chmod(0o755)

    programs = programs_for(user, private, place / "copies")

    assert run_as(user, programs / "bin" / "redis-server").stdout.startswith("Redis server")
    with pytest.raises(PermissionError):
        run_as(user, private.site / private.programs / "bin" / "redis-server")


def test_a_copy_is_made_once_and_is_owned_by_root(place: Path, user: ServiceUser, private):
    place.chmod(0o755)
    first = programs_for(user, private, place / "copies")
    before = first.stat()

    again = programs_for(user, private, place / "copies")

    assert (again, again.stat().st_ino, before.st_uid) == (first, before.st_ino, 0)
    assert not [path for path in first.rglob("*") if path.stat().st_mode & 0o022]


def test_the_error_says_what_to_do_if_no_copy_can_be_made(place: Path, user: ServiceUser, private):
    (place / "copies").write_text("a file is in the way")

    with pytest.raises(StartupError, match=r"Install the gateway where every user may read it"):
        programs_for(user, private, place / "copies")


def test_programs_that_every_user_may_read_are_not_copied(place: Path):
    wheel = installed(PACKAGE, "")

    assert programs_for(None, wheel, place / "copies") == wheel.site / wheel.programs
    assert not (place / "copies").exists()

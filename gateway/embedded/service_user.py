"""Whom the local servers run as, and their way to the files they need.

Postgres refuses to run as root. When we are root, the servers run as a user of their own. Their directories are
opened for them, so that they need not pass through what lies above, and nobody's permissions are changed.
"""

import fcntl
import os
import pwd
import shutil
import stat
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway.embedded import StartupError
from gateway.embedded.parent_death_signal import FIRST_DESCRIPTOR

#: the user made on a machine where we are root
USER_NAME = "pgserver"

REMEDY = (
    "Start the gateway as an ordinary user, or set GATEWAY_DATABASE_URL and GATEWAY_REDIS_URL to use other servers."
)


@dataclass(frozen=True, slots=True)
class ServiceUser:
    """A user of this machine other than ourselves."""

    uid: int
    gid: int


def service_user_for(directory: Path) -> ServiceUser | None:
    """Whom servers in the directory run as: None is ourselves; for root its owner, or a user made for it."""
    if os.geteuid() != 0:
        return None
    if directory.exists() and (owner := directory.stat()).st_uid != 0:
        return ServiceUser(owner.st_uid, owner.st_gid)
    # One after the other: of two that are made at the same moment the one that is lost may have been returned already.
    with Path("/etc/passwd").open() as users:
        fcntl.flock(users, fcntl.LOCK_EX)
        try:
            entry = pwd.getpwnam(USER_NAME)
        except KeyError:
            _make_user()
            entry = pwd.getpwnam(USER_NAME)
    return ServiceUser(entry.pw_uid, entry.pw_gid)


def _make_user() -> None:
    useradd = shutil.which("useradd", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    if useradd is None:
        raise StartupError(
            f"Postgres does not run as root, and there is no useradd to make an account for it. {REMEDY}"
        )
    options = ("--system", "--user-group", "--no-create-home", "--shell", "/bin/false")
    made = subprocess.run(  # noqa: S603  fixed arguments
        [useradd, *options, USER_NAME], capture_output=True, text=True, check=False
    )
    # 9: the name is taken, that is, another gateway made it at the same moment
    if made.returncode not in (0, 9):
        raise StartupError(f"Making the account {USER_NAME} failed: {made.stderr.strip()}. {REMEDY}")


def paths_for(service_user: ServiceUser | None, directories: Sequence[Path]) -> list[str]:
    """How a server names the directories that are opened for it; where it runs as ourselves, by their paths."""
    if service_user is None:
        return [str(directory) for directory in directories]
    if sys.platform != "linux":
        raise StartupError(f"Postgres does not run as root. {REMEDY}")
    return [f"/proc/self/fd/{number}" for number, _ in enumerate(directories, FIRST_DESCRIPTOR)]


def ensure_readable(root: Path, service_user: ServiceUser | None) -> None:
    """StartupError, with what to do, where the service user cannot run the program that is installed there."""
    if service_user is None:
        return
    for step in (root, *root.parents):
        if not _may_enter(step, service_user) or (step == root and not step.stat().st_mode & stat.S_IROTH):
            raise StartupError(
                f"The local servers do not run as root but as user id {service_user.uid}, which cannot enter {step}, "
                "where they are installed. Install the gateway where every user may read it, for example in /opt. "
                f"{REMEDY}"
            )


def _may_enter(directory: Path, service_user: ServiceUser) -> bool:
    status = directory.stat()
    if status.st_uid == service_user.uid:
        return bool(status.st_mode & stat.S_IXUSR)
    if status.st_gid == service_user.gid:
        return bool(status.st_mode & stat.S_IXGRP)
    return bool(status.st_mode & stat.S_IXOTH)

"""The user that the local servers run as, and its access to data directories and programs.

PostgreSQL refuses to run as root. Under root the servers run as a system user. The launcher opens their data
directories before it changes the user, so the servers need no permission on the directories above, and no
permission is changed. Programs that the user cannot read are copied once to `PROGRAMS`.
"""

import fcntl
import logging
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

#: the user that is created if the gateway runs as root
USER_NAME = "pgserver"
#: copies of server programs that are installed where that user cannot read them (FHS 3.0, /var/lib)
PROGRAMS = Path("/var/lib/agent-connector-gateway/programs")

logger = logging.getLogger(__name__)

REMEDY = (
    "Start the gateway as an ordinary user, or set GATEWAY_DATABASE_URL and GATEWAY_REDIS_URL to use other servers."
)


@dataclass(frozen=True, slots=True)
class ServiceUser:
    """A user of this machine other than that of this process."""

    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class Installed:
    """An installed wheel of a server: the site directory, and paths relative to it."""

    site: Path
    #: package and version; the name of a copy
    label: str
    programs: Path
    #: shared libraries next to the package, which programs find by a relative path
    libraries: Path


def service_user_for(directory: Path) -> ServiceUser | None:
    """The user of servers in the directory: under root its owner or a system user, else None for the current user."""
    if os.geteuid() != 0:
        return None
    if directory.exists() and (owner := directory.stat()).st_uid != 0:
        return ServiceUser(owner.st_uid, owner.st_gid)
    # Locked: if two processes created the user at the same time, one of the two user ids would be lost.
    with Path("/etc/passwd").open() as users:
        fcntl.flock(users, fcntl.LOCK_EX)
        try:
            entry = pwd.getpwnam(USER_NAME)
        except KeyError:
            _create_user()
            entry = pwd.getpwnam(USER_NAME)
    return ServiceUser(entry.pw_uid, entry.pw_gid)


def _create_user() -> None:
    useradd = shutil.which("useradd", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    if useradd is None:
        raise StartupError(
            f"PostgreSQL does not run as root, and there is no useradd to create a user for it. {REMEDY}"
        )
    options = ("--system", "--user-group", "--no-create-home", "--shell", "/bin/false")
    made = subprocess.run(  # noqa: S603  fixed arguments
        [useradd, *options, USER_NAME], capture_output=True, text=True, check=False
    )
    if made.returncode == 0:
        logger.info(
            "created the system user %s: PostgreSQL does not run as root, so the local servers run as this user",
            USER_NAME,
        )
    # 9: the name exists, because another gateway created it at the same time
    if made.returncode not in (0, 9):
        raise StartupError(f"Creating the user {USER_NAME} failed: {made.stderr.strip()}. {REMEDY}")


def paths_for(service_user: ServiceUser | None, directories: Sequence[Path]) -> list[str]:
    """The paths of directories for a server: under a service user, those of the descriptors that are opened for it."""
    if service_user is None:
        return [str(directory) for directory in directories]
    if sys.platform != "linux":
        raise StartupError(f"PostgreSQL does not run as root. {REMEDY}")
    return [f"/proc/self/fd/{number}" for number, _ in enumerate(directories, FIRST_DESCRIPTOR)]


def programs_for(service_user: ServiceUser | None, installed: Installed, copies: Path = PROGRAMS) -> Path:
    """The directory with a server's programs: as installed, or a copy below `copies` that the service user may run.

    An installation in root's home or another private directory needs the copy. It is made once for each version, and
    gets its name when it is complete. Raises StartupError if no copy can be made.
    """
    if service_user is None or _may_run(installed.site / installed.programs, service_user):
        return installed.site / installed.programs
    copied = copies / installed.label
    try:
        copies.mkdir(mode=0o755, parents=True, exist_ok=True)
        with (copies / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not copied.exists():
                _copy(installed, copied)
    except OSError as error:
        raise StartupError(
            f"The local servers run as user id {service_user.uid}, which cannot read {installed.site}, where they are "
            f"installed, and copying them to {copied} failed: {error}. Install the gateway where every user may read "
            f"it, for example in /opt. {REMEDY}"
        ) from error
    if not _may_run(copied / installed.programs, service_user):
        raise StartupError(
            f"The local servers run as user id {service_user.uid}, which can read neither {installed.site} nor "
            f"{copied}. Let every user enter {copies} (chmod 755). {REMEDY}"
        )
    return copied / installed.programs


def _copy(installed: Installed, copied: Path) -> None:
    draft = copied.with_name(f"{copied.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    for part in (installed.programs, installed.libraries):
        if (installed.site / part).is_dir():
            shutil.copytree(installed.site / part, draft / part, symlinks=True)
    for path in (draft, *draft.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & stat.S_IXUSR else 0o644)
    draft.rename(copied)
    logger.info("the local servers are copied to %s, because their user cannot read %s", copied, installed.site)


def _may_run(programs: Path, service_user: ServiceUser) -> bool:
    if not programs.is_dir() or not programs.stat().st_mode & stat.S_IROTH:
        return False
    return all(_may_enter(step, service_user) for step in (programs, *programs.parents))


def _may_enter(directory: Path, service_user: ServiceUser) -> bool:
    status = directory.stat()
    if status.st_uid == service_user.uid:
        return bool(status.st_mode & stat.S_IXUSR)
    if status.st_gid == service_user.gid:
        return bool(status.st_mode & stat.S_IXGRP)
    return bool(status.st_mode & stat.S_IXOTH)

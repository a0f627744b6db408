"""Whom the local servers run as, and their way to the files they need.

Postgres refuses to run as root. When we are root, the servers run under an account of their own, and directories on the
way to their files are opened for passing (never for listing) where that account could not pass.
"""

import logging
import os
import pwd
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

from gateway.embedded import StartupError

logger = logging.getLogger(__name__)

#: the account made on a machine where we are root
ACCOUNT_NAME = "pgserver"

REMEDY = (
    "Start the gateway as an ordinary user, or set GATEWAY_DATABASE_URL and GATEWAY_REDIS_URL to use other servers."
)


@dataclass(frozen=True, slots=True)
class Account:
    """A user of this machine other than ourselves."""

    uid: int
    gid: int


def server_account(directory: Path) -> Account | None:
    """Whom servers in the directory run as: None is ourselves; for root its owner, or an account made for it."""
    if os.geteuid() != 0:
        return None
    if directory.exists() and (owner := directory.stat()).st_uid != 0:
        return Account(owner.st_uid, owner.st_gid)
    try:
        entry = pwd.getpwnam(ACCOUNT_NAME)
    except KeyError:
        _make_account()
        entry = pwd.getpwnam(ACCOUNT_NAME)
    return Account(entry.pw_uid, entry.pw_gid)


def _make_account() -> None:
    useradd = shutil.which("useradd", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    if useradd is None:
        raise StartupError(
            f"Postgres does not run as root, and there is no useradd to make an account for it. {REMEDY}"
        )
    options = ("--system", "--user-group", "--no-create-home", "--shell", "/bin/false")
    made = subprocess.run(  # noqa: S603  fixed arguments
        [useradd, *options, ACCOUNT_NAME], capture_output=True, text=True, check=False
    )
    # 9: the name is taken, that is, another gateway made it at the same moment
    if made.returncode not in (0, 9):
        raise StartupError(f"Making the account {ACCOUNT_NAME} failed: {made.stderr.strip()}. {REMEDY}")


def open_passage(directory: Path, account: Account | None) -> None:
    """Let the account pass through the directory and all above it; adds `o+x` where needed, and says so."""
    if account is None:
        return
    for step in (directory, *directory.parents):
        if not _may_pass(step, account):
            step.chmod(stat.S_IMODE(step.stat().st_mode) | stat.S_IXOTH)
            logger.warning("%s is now passable (o+x), because the local servers do not run as root", step)


def open_installation(root: Path, account: Account | None) -> None:
    """Let the account read an installed program, also one that was installed under a strict umask."""
    if account is None:
        return
    open_passage(root.parent, account)
    if root.stat().st_mode & stat.S_IROTH:
        return
    for path in (root, *root.rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        path.chmod(mode | stat.S_IROTH | (stat.S_IXOTH if mode & stat.S_IXUSR else 0))


def _may_pass(directory: Path, account: Account) -> bool:
    status = directory.stat()
    if status.st_uid == account.uid:
        return bool(status.st_mode & stat.S_IXUSR)
    if status.st_gid == account.gid:
        return bool(status.st_mode & stat.S_IXGRP)
    return bool(status.st_mode & stat.S_IXOTH)

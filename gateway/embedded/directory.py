"""Private directories and files, the lock of a directory, and short paths for unix sockets."""

import fcntl
import hashlib
import os
import stat
import tempfile
from pathlib import Path

from gateway.embedded import StartupError
from gateway.embedded.service_user import ServiceUser

LOCK = "lock"

#: names of the gateway's files; the mode of a directory that contains one may be changed
GATEWAY_FILES = frozenset({LOCK, "postgres", "redis", "encryption.keys", "first-client.json", "address", "env"})

#: bytes in the path of a unix socket: sun_path of unix(7) on Linux is 108 with the final NUL, on BSD and macOS 104
LONGEST_SOCKET_PATH = 103

#: the longest name that a server gives its socket
SOCKET_NAME = ".s.PGSQL.5432"


def private_directory(directory: Path) -> None:
    """Create the directory if needed, mode 0700. A directory with only other files keeps its mode."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    names = {entry.name for entry in directory.iterdir()}
    if names and not names & GATEWAY_FILES:
        _require_safe(directory)
    else:
        directory.chmod(0o700)


def _require_safe(directory: Path) -> None:
    """Raise StartupError if other users may write to the directory; the gateway's files in it are private."""
    if directory.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise StartupError(
            f"{directory} contains other files, and other users may write to it. "
            "Choose an empty data directory (--data-dir)."
        )


def owned_directory(directory: Path, service_user: ServiceUser | None) -> None:
    """Create the directory if needed, mode 0700, owned by the service user; raises StartupError for another owner."""
    owner = service_user.uid if service_user else os.geteuid()
    try:
        directory.mkdir(mode=0o700)
    except FileExistsError:
        pass
    else:
        os.chown(directory, owner, service_user.gid if service_user else -1)
    status = directory.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != owner:
        raise StartupError(
            f"{directory} belongs to user id {status.st_uid}, but the server runs as user id {owner}. "
            "Start the gateway as the user who created the data directory, or choose another one (--data-dir)."
        )
    directory.chmod(0o700)


def socket_directory(directory: Path, service_user: ServiceUser | None) -> Path:
    """A directory for sockets: `run` in the directory. If that path is too long, `run` links to a short one."""
    run = directory / "run"
    if len(os.fsencode(run / SOCKET_NAME)) <= LONGEST_SOCKET_PATH:
        owned_directory(run, service_user)
        return run
    short = _short_base() / f"gateway-{hashlib.sha256(os.fsencode(directory)).hexdigest()[:12]}"
    owned_directory(short, service_user)
    if run.is_symlink():
        run.unlink()
    if not run.exists():
        run.symlink_to(short)
    return short


def _short_base() -> Path:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    candidates = (*((runtime,) if runtime and os.geteuid() != 0 else ()), tempfile.gettempdir())
    fitting = (Path(base) for base in candidates if len(base) < LONGEST_SOCKET_PATH // 2 and os.path.isdir(base))
    # /tmp is safe here: the gateway's directory in it is private, and its owner is checked
    return next(fitting, Path("/tmp"))  # noqa: S108


class DirectoryLock:
    """A lock for one process at a time; the system releases it when the process ends, even if it is killed."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / LOCK
        self._file: int | None = None

    def acquire(self) -> None:
        """Take the lock until `release`; raises StartupError if another process holds it."""
        if self._file is not None:
            return
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(file, 32, 0).decode().strip()
            os.close(file)
            raise StartupError(
                f"{self._path.parent} is in use by process {holder or 'unknown'}. Stop that process, or choose another "
                "data directory (--data-dir)."
            ) from error
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        self._file = file

    def release(self) -> None:
        """Release the lock; does nothing if it is not held."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def write_private(path: Path, text: str) -> None:
    """Replace the file atomically, mode 0600, after the text was flushed to the disk."""
    file, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mkstemp creates it with mode 0600
    try:
        with os.fdopen(file, "w") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise

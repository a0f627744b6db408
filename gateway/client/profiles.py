"""Profiles: the gateways that `gateway login` has signed in to, in a file that only this user can read."""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import msgspec

from gateway.errors import MalformedRequest, NotFound
from gateway.kinds.suggestions import did_you_mean

_FOLDER, _FILE, _LOCK = "agent-connector-gateway", "profiles.json", "profiles.lock"


class Profile(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A gateway with the credentials of a sign-in: a client and its secret, or the tokens of a person."""

    base_url: str
    client_id: str
    client_secret: str | None = None
    refresh_token: str | None = None
    access_token: str | None = None
    access_token_ends_at: datetime | None = None
    workspace_name: str | None = None
    organization_id: str | None = None

    def __repr__(self) -> str:
        return f"Profile({self.base_url!r}, {self.client_id!r})"


class _Stored(msgspec.Struct):
    current: str | None = None
    profiles: dict[str, Profile] = {}


class Profiles:
    """Reads and writes the file of profiles; a lock between processes protects each change."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        base = environ.get("XDG_CONFIG_HOME") or Path(environ.get("HOME") or Path.home()) / ".config"
        self.folder = Path(base) / _FOLDER
        self.path = self.folder / _FILE

    def all(self) -> dict[str, Profile]:
        """Every profile by its name."""
        return self._read().profiles

    def current(self) -> str | None:
        """The name of the profile that is used unless an option or the environment names another."""
        return self._read().current

    def get(self, name: str) -> Profile:
        """A profile; raises NotFound with the nearest name."""
        profiles = self.all()
        if name not in profiles:
            raise NotFound(
                f"there is no profile {name!r}; {did_you_mean(name, profiles)}; `gateway login URL --profile {name}` "
                "creates it"
            )
        return profiles[name]

    def save(self, name: str, profile: Profile) -> None:
        """Add or replace a profile, and make it the current one."""
        with self.locked():
            stored = self._read()
            self._write(_Stored(name, {**stored.profiles, name: profile}))

    def replace(self, name: str, profile: Profile) -> None:
        """Replace a profile; the caller holds the lock."""
        stored = self._read()
        self._write(_Stored(stored.current, {**stored.profiles, name: profile}))

    def use(self, name: str) -> None:
        """Make a profile the current one; raises NotFound."""
        with self.locked():
            self.get(name)
            self._write(_Stored(name, self.all()))

    def remove(self, name: str) -> None:
        """Delete a profile; raises NotFound."""
        with self.locked():
            self.get(name)
            stored = self._read()
            others = {each: profile for each, profile in stored.profiles.items() if each != name}
            self._write(_Stored(None if stored.current == name else stored.current, others))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the file between processes: if two used the same refresh token, the gateway would end the sign-in."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(self.folder / _LOCK, "w", opener=_private) as lock:
            try:
                import fcntl
            except ImportError:  # Windows has no fcntl; there only one process at a time may use profiles
                yield
                return
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _read(self) -> _Stored:
        try:
            if os.name == "posix" and self.path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise MalformedRequest(f"other users can read {self.path}; run `chmod 600 {self.path}`")
            return msgspec.json.decode(self.path.read_bytes(), type=_Stored)
        except FileNotFoundError:
            return _Stored()
        except (OSError, msgspec.DecodeError) as error:
            raise MalformedRequest(f"{self.path} cannot be read ({error}); correct or remove it") from error

    def _write(self, stored: _Stored) -> None:
        partial = self.path.with_suffix(f".{os.getpid()}")
        with open(partial, "wb", opener=_private) as file:
            file.write(msgspec.json.format(msgspec.json.encode(stored), indent=2))
        partial.replace(self.path)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)

"""What a key service does, its errors, and its requests: JSON over HTTPS."""

import base64
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import aiohttp
import msgspec

from gateway.foundation.aio.bodies import read_body

#: seconds for a request
_TIMEOUT = 10.0
#: maximum bytes of a response
_MAX_BODY = 1 << 20
#: maximum characters of a service's own words in an error
_MAX_WORDS = 200
#: statuses of a service that cannot answer now, besides 5xx
_AWAY = (408, 412, 429)
#: how the services say that a key is disabled, deleted or not found: AWS, Azure, Google, Vault
_WITHDRAWN = (
    *(b"DisabledException", b"NotFoundException", b"is pending deletion"),
    *(b'"KeyDisabled"', b'"KeyNotFound"'),
    *(b"current state is: DISABLED", b"current state is: DESTROY", b'"NOT_FOUND"'),
    *(b"encryption key not found", b"disallowed by policy (too old)"),
)


class KeyServiceError(Exception):
    """A key service did not unwrap or wrap a key; the text has no secret."""


class KeyServiceAway(KeyServiceError):
    """The key service does not respond, or asks to try again later."""


class KeyServiceRefused(KeyServiceError):
    """The key service refuses, or cannot be asked: the operator must correct something."""


class KeyWithdrawn(KeyServiceRefused):
    """The key service says that its key is disabled, deleted or not found."""


class KeyService(Protocol):
    """A key of a key service, which wraps other keys."""

    async def wrap(self, key: bytes) -> tuple[str, bytes]:
        """The URL with which it is unwrapped, and the wrapped key; raises KeyServiceError."""

    async def unwrap(self, wrapped: bytes) -> bytes:
        """The key; raises KeyServiceError."""


class Http:
    """Sends the requests of one service; `name` begins its errors."""

    def __init__(self, session: aiohttp.ClientSession, name: str) -> None:
        self._session = session
        self.name = name

    async def json(self, method: str, url: str, **options: Any) -> dict[str, Any]:
        """The response's JSON object; raises KeyServiceError."""
        content = await self.content(method, url, **options)
        try:
            document = msgspec.json.decode(content)
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise KeyServiceAway(f"{self.name}: the response is not a JSON object")
        return document

    async def content(self, method: str, url: str, **options: Any) -> bytes:
        """The response's body; raises KeyServiceError."""
        try:
            async with self._session.request(method, url, allow_redirects=False, **options) as response:
                content = await read_body(response.content, _MAX_BODY)
        except aiohttp.InvalidURL:
            raise KeyServiceRefused(f"{self.name}: its address is not valid") from None
        except TimeoutError:
            raise KeyServiceAway(f"{self.name} does not respond within {_TIMEOUT:.0f} s") from None
        except (aiohttp.ClientError, OSError) as error:
            raise KeyServiceAway(f"{self.name} does not respond: {_reason(error)}") from None
        if response.status in (200, 201):
            return content
        said = f"{self.name} answered {response.status}{_words_of(content)}"
        is_away = response.status >= 500 or response.status in _AWAY or _is_throttled(content)
        if is_away:
            raise KeyServiceAway(said)
        raise KeyWithdrawn(said) if any(words in content for words in _WITHDRAWN) else KeyServiceRefused(said)


@asynccontextmanager
async def key_service_session() -> AsyncIterator[aiohttp.ClientSession]:
    """A session for requests to key services, without cookies and proxies."""
    timeout = aiohttp.ClientTimeout(total=_TIMEOUT)
    async with aiohttp.ClientSession(timeout=timeout, cookie_jar=aiohttp.DummyCookieJar()) as session:
        yield session


def member(document: Mapping[str, Any], *path: str) -> str:
    """The text at a path of members; raises KeyServiceAway if the response has none."""
    value: Any = document
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    if not isinstance(value, str) or not value:
        raise KeyServiceAway(f"the response of the key service has no {'.'.join(path)}")
    return value


def required(environ: Mapping[str, str], name: str, purpose: str) -> str:
    """The value of a variable; raises KeyServiceRefused if it is not set."""
    if value := environ.get(name):
        return value
    raise KeyServiceRefused(f"{name} is not set: {purpose}")


def file_content(path: str) -> str:
    """The text of a file that a variable names; raises KeyServiceRefused."""
    try:
        return Path(path).read_text("utf-8").strip()
    except OSError as error:
        raise KeyServiceRefused(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise KeyServiceRefused(f"{path} cannot be read: it is not text in UTF-8") from None


def encoded(value: bytes, *, is_for_urls: bool = False) -> str:
    """Base64, or the alphabet for URLs without padding."""
    return base64.urlsafe_b64encode(value).decode().rstrip("=") if is_for_urls else base64.b64encode(value).decode()


def decoded(text: str) -> bytes:
    """The bytes of Base64, of either alphabet and with or without padding; raises KeyServiceAway."""
    bare = text.translate(_STANDARD).rstrip("=")
    try:
        return base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)
    except ValueError:
        raise KeyServiceAway("the response of the key service is not Base64") from None


_STANDARD = str.maketrans("-_", "+/")


def _reason(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:_MAX_WORDS]


def _is_throttled(content: bytes) -> bool:
    """Whether AWS asks to try again later, which it may say with status 400."""
    return b"Throttl" in content[:_MAX_WORDS] or b"KMSInternal" in content[:_MAX_WORDS]


def _words_of(content: bytes) -> str:
    """The code and the message of an error in the formats of the services; empty for any other body."""
    try:
        document = msgspec.json.decode(content)
    except ValueError:
        return ""
    if not isinstance(document, dict):
        return ""
    inner = document["error"] if isinstance(document.get("error"), dict) else document
    names = ("__type", "code", "status", "error", "error_description", "message", "Message")
    found = [str(inner[name]).rpartition("#")[2] for name in names if isinstance(inner.get(name), str)]
    found += [str(each) for each in document.get("errors") or () if isinstance(each, str)]
    words = " ".join(": ".join(found).split())
    return f": {words[:_MAX_WORDS]}" if words else ""

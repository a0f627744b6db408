"""Models of the application's webhooks: how notices are signed, and which entities they are about."""

from typing import Literal

from pydantic import Field

from gateway.kinds.members import Identifier, JsonPath, MetaPath, Model


class NoticeSignature(Model):
    """How the application signs its notices (HMAC, RFC 2104)."""

    header: str
    algorithm: Literal["sha1", "sha256", "sha512"] = "sha256"
    encoding: Literal["hex", "base64"] = "hex"
    #: the separator of the header's items, if it may hold several signatures
    separator: str | None = None
    #: prefix of the signature, or of an item that is one: `v1=`
    prefix: str = ""
    #: the signed text, with `{body}` (the raw bytes), `{timestamp}`, `{delivery_id}`, `{method}` and `{url}` filled in
    signed: str = "{body}"
    #: prefix of the secret that the application shows, if it is not part of the key: `whsec_`
    secret_prefix: str = ""
    #: whether the secret is the key itself or the key in Base64
    secret_encoding: Literal["text", "base64"] = "text"


class NoticeTimestamp(Model):
    """The time at which a notice was signed; older notices are refused."""

    #: the place of the time: a JsonPath of the body, or `$header.name`
    path: MetaPath
    #: the separator of the header's items, if it has several
    separator: str | None = None
    #: the prefix of the item with the time
    prefix: str = ""
    format: Literal["unix", "unix_ms", "iso8601"] = "unix"
    #: seconds that it may differ from the gateway's time
    tolerance: int = Field(300, ge=1)


class NoticeHandshake(Model):
    """How the application verifies that the URL belongs to the caller."""

    #: `challenge`: a signed request; the response has the value at `path` as `challenge`. `secret`: an unsigned request
    #: has the secret that signs later ones at `path`; a secret in a header is sent back in that header
    style: Literal["challenge", "secret"]
    #: a JsonPath of the body, or `$header.name`
    path: MetaPath


class NoticeRule(Model):
    """The entities that notices of some types are about."""

    #: types of changes, `*` for any text; `""` is a change without a type
    types: tuple[str, ...]
    #: the entities whose next synchronization is brought forward
    entities: tuple[Identifier, ...]
    #: the path of the record's id in a change: `get` reads that record, and the entity is not synchronized
    record_id: JsonPath = ()


class NoticeSpec(Model):
    """The webhooks of the application: how its notices are verified, and what they are about."""

    signature: NoticeSignature
    timestamp: NoticeTimestamp | None = None
    #: the signed id of a delivery: a JsonPath of the body, or `$header.name`; by default the digest of the signed text
    delivery_id: MetaPath = ()
    handshake: NoticeHandshake | None = None
    #: the list of changes in the body; `$` is the body, which may be one change
    changes: JsonPath = ()
    #: the type of a change: a JsonPath in it, or `$header.name` of the notice
    type: MetaPath
    #: the first rule that has the type of a change counts; changes of other types are ignored
    rules: tuple[NoticeRule, ...]

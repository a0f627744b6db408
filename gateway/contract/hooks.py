"""Hooks: URLs that receive the notices of connectors' applications."""

from typing import Annotated

from msgspec import Struct

from gateway.contract.members import ID, TIME, Id, Time, Url, member


class HookView(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The hook of a connector."""

    id: Annotated[Id, member("The id of the hook.")]
    connector_id: Annotated[Id, member("The connector whose application sends notices here.")]
    url: Annotated[Url, member("Where the application sends its notices.", f"https://gateway.example.com/hooks/{ID}")]
    has_secret: Annotated[bool, member("Whether there is a secret; without one every notice is refused.", True)]
    created_at: Annotated[Time, member("When the hook was created.", TIME)]
    handshake_until: Annotated[
        Time | None, member("Until when the application's handshake may set the secret.", TIME)
    ] = None
    verification_token: Annotated[
        str | None, member("The token that the application sent, to be copied into its settings within the hour.")
    ] = None
    last_notice_at: Annotated[
        Time | None, member("When the last notice arrived, within the last seven days.", TIME)
    ] = None


class NoticeAnswer(Struct, frozen=True, omit_defaults=True):
    """The response to an application's notice."""

    challenge: Annotated[str | None, member("The challenge of a handshake, sent back.", "3eZbrw1aB10FEMAGAZd4FyFQ")] = (
        None
    )

"""Resumable uploads."""

from typing import Annotated

from msgspec import Struct

from gateway.contract.answers import Answer
from gateway.contract.members import Id, Time, member


class UploadView(Struct, frozen=True):
    """The state of an upload."""

    id: Annotated[Id, member("The upload's id.")]
    connector_id: Annotated[Id, member("The connector.")]
    entity: Annotated[str, member("The entity.", "files_upload")]
    size: Annotated[int, member("Bytes of the whole file.", 5_242_880)]
    offset: Annotated[int, member("Bytes that the application has stored; send the rest from here.", 2_097_152)]
    complete: Annotated[bool, member("Whether the application has the whole file.", False)]
    expires_at: Annotated[Time, member("When the upload can no longer be resumed.")]
    answer: Annotated[Answer | None, member("The answer of `execute`, once the upload is complete.")] = None

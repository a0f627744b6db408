"""The model of applications that take a file in pieces."""

from pydantic import Field

from gateway.kinds.long_running import FollowUp


class UploadSession(FollowUp):
    """A session that takes a file in pieces: `request` opens it with the params beside the file as JSON.

    The response names the URL of the session. Each piece is a PUT with `Content-Range: bytes first-last/size` (RFC 9110
    §14.4); until the file is complete, the response is 308 with the stored `Range`. A PUT with `bytes */size` and no
    body asks for the stored range. 404 and 410 mean that the session has ended.
    https://developers.google.com/workspace/drive/api/guides/manage-uploads#resumable
    """

    #: the response header that holds the URL of the session
    url_header: str = "location"
    #: the request headers that announce the file's bytes and its type
    size_header: str | None = None
    type_header: str | None = None
    #: bytes of which each piece but the last is a multiple
    multiple: int = Field(ge=1, le=1 << 20)
    #: seconds after which the application deletes a session
    lifetime: int = Field(ge=60)

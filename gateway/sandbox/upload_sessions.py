"""Upload sessions, simulated from the spec: a session accepts pieces in order, and creates the record at the end."""

import hashlib
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.kinds.catalog import Operation
from gateway.sandbox.calls import Call, Handler, Refusal, Reply
from gateway.sandbox.operations import Operations

#: the query member with the id of a session
_QUERY = "upload_id"
_RANGE = re.compile(r"bytes (?:(\d+)-(\d+)|\*)/(\d+)")


@dataclass(slots=True, kw_only=True)
class _Session:
    """A file that is being uploaded: the bytes received so far, and their digests."""

    operation: Operation
    call: Call
    size: int
    stored: int = 0
    md5: Any = field(default_factory=lambda: hashlib.md5(usedforsecurity=False))
    sha256: Any = field(default_factory=hashlib.sha256)
    reply: Reply | None = None


class UploadSessions:
    """The sessions of one application."""

    def __init__(self, application: Operations) -> None:
        self._application = application
        self._sessions: dict[str, _Session] = {}

    def reset(self) -> None:
        self._sessions.clear()

    def start(self, operation: Operation, call: Call) -> Reply:
        """Open a session for the file that the headers announce."""
        how = operation.action.upload_session
        assert how is not None
        announced = call.headers.get((how.size_header or "").lower(), "")
        if how.size_header is not None and not announced.isdigit():
            raise Refusal(400, message=f"{how.size_header} is missing")
        session_id = uuid.uuid4().hex
        self._sessions[session_id] = _Session(operation=operation, call=call, size=int(announced or 0))
        query = "".join(f"{name}={value}&" for name, value in call.query.items())
        host = operation.action.server or operation.spec.server
        url = f"{'/'.join(host.split('/')[:3])}{call.path[self._own_path(call) :]}?{query}{_QUERY}={session_id}"
        return Reply(headers={how.url_header.title(): url})

    def handlers(self) -> Mapping[str, Handler]:
        """The handlers of the pieces, by request line."""
        found: dict[str, Handler] = {}
        for operation in self._application.kind.operations.values():
            how = operation.action.upload_session
            if how is not None:
                found[f"PUT {how.request.split(' ', 1)[1]}"] = self._put
        return found

    def _own_path(self, call: Call) -> int:
        """The length of the prefix of a path that is not the application's."""
        prefix = f"/_kinds/{self._application.kind.name}"
        return len(prefix) if call.path.startswith(prefix) else 0

    def _put(self, call: Call) -> Reply:
        """Store the next piece of the file; a request without one returns the stored range."""
        session = self._sessions.get(call.query.get(_QUERY, ""))
        stated = _RANGE.fullmatch(call.headers.get("content-range", ""))
        if session is None:
            raise Refusal(404, message="there is no such upload")
        if stated is None or int(stated[3]) != session.size:
            raise Refusal(400, message="Content-Range is missing or names another size")
        if session.reply is not None:
            return session.reply
        if stated[1] is not None:
            self._store(session, int(stated[1]), int(stated[2]) + 1, call.content)
        if session.stored == session.size:
            session.reply = self._finished(session, call)
            return session.reply
        return Reply(status=308, headers={"Range": f"bytes=0-{session.stored - 1}"} if session.stored else {})

    def _store(self, session: _Session, first: int, end: int, content: bytes) -> None:
        how = session.operation.action.upload_session
        assert how is not None
        if first != session.stored or len(content) != end - first or end > session.size:
            raise Refusal(400, message=f"the next piece must begin at {session.stored}")
        if end < session.size and end % how.multiple:
            raise Refusal(400, message=f"all pieces but the last must be multiples of {how.multiple} bytes")
        session.md5.update(content)
        session.sha256.update(content)
        session.stored = end

    def _finished(self, session: _Session, call: Call) -> Reply:
        """The response to the last piece: the record, with the size and the digests of the file."""
        operation, application = session.operation, self._application
        members = {
            **application.body_of(operation, session.call),
            "size": str(session.size),
            "md5Checksum": session.md5.hexdigest(),
            "sha256Checksum": session.sha256.hexdigest(),
        }
        row = application.add_row(application.table_of(operation), members, call.now)
        return application.one(operation, row, session.call)

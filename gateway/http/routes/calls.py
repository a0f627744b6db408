"""Operations, files and the synchronized copies."""

from gateway.contract.answers import Answer
from gateway.contract.connectors import ContextStoreView
from gateway.contract.jobs import AcceptedJobView
from gateway.contract.uploads import UploadView
from gateway.http.api import batches, context_store, downloads, execute, uploads
from gateway.http.route import (
    ACCEPTED_HEADERS,
    CALL_ERRORS,
    FILE_HEADERS,
    FILE_MEDIA,
    FILE_SENDS,
    RANGE_HEADERS,
    Route,
)
from gateway.identity.model import Scope

READ = Scope.READ
_CONNECTORS = "/api/v1/integrations/connectors"
_CONNECTOR = _CONNECTORS + "/{connector_id}"
_UPLOAD = ("Upload-Complete", "Upload-Offset", "Upload-Length", "Upload-Limit", "Cache-Control")
_SUNSET = ("Deprecation", "Sunset", "Link")
_FILE = {
    200: "The file",
    206: "The requested range",
    304: "The file has not changed",
    416: "The file has no such range",
}

ROUTES: tuple[Route, ...] = (
    Route(
        "POST",
        _CONNECTOR + "/execute",
        execute.execute,
        "Run one operation",
        "Execute",
        body=execute.ExecuteBody,
        response={200: Answer, 202: AcceptedJobView},
        answers={
            200: "The answer",
            202: "The job",
            206: "A range of a file",
            303: "Redirects to the result, for callers that send X-ADP-Agent-SDK",
            304: "The file has not changed",
        },
        media={200: FILE_MEDIA, 206: FILE_MEDIA},
        errors=CALL_ERRORS,
        reads=("Prefer", "Idempotency-Key", "Cache-Control", *RANGE_HEADERS, "X-ADP-Agent-SDK"),
        sends={
            200: ("Preference-Applied", "Idempotency-Replayed", "Age", "Cache-Status", *_SUNSET, *FILE_HEADERS),
            202: (*ACCEPTED_HEADERS, "Idempotency-Replayed", *_SUNSET),
            206: FILE_SENDS[206],
            303: ("Location",),
            304: FILE_HEADERS,
        },
        audit="execute",
        command="gateway call support-desk tickets list per_page=2 --select id,subject",
        python=(
            'answer = await gateway.execute("support-desk", "tickets", "list", {"per_page": 2})\n'
            "print(answer.result, answer.meta)"
        ),
    ),
    Route(
        "POST",
        _CONNECTOR + "/batch",
        batches.start_batch,
        "Run many operations as one job",
        "Execute",
        body=batches.BatchBody,
        line_media=("application/x-ndjson",),
        line_example='{"entity":"tickets","action":"get","params":{"ticket_id":1}}\n',
        query=batches.BatchQuery,
        response={200: Answer, 202: AcceptedJobView},
        answers={
            200: "The result, if the caller waited for it",
            202: "The job that runs them",
            303: "Redirects to the result, for callers that send X-ADP-Agent-SDK",
        },
        media={200: ("application/x-ndjson",)},
        errors=CALL_ERRORS,
        reads=("Prefer", "Idempotency-Key", "X-ADP-Agent-SDK"),
        sends={
            200: ("Location", "Preference-Applied", "Idempotency-Replayed"),
            202: (*ACCEPTED_HEADERS, "Idempotency-Replayed"),
            303: ("Location",),
        },
        audit="batch",
        command="gateway batch close.ndjson --connector support-desk",
        python=(
            'reads = [{"entity": "tickets", "action": "get", "params": {"ticket_id": number}} for number in (1, 2)]\n'
            'job = await gateway.batch("support-desk", reads)\n'
            "async for result in job.records():\n    print(result)"
        ),
    ),
    Route(
        "GET",
        _CONNECTOR + "/download/{entity}",
        downloads.get_file,
        "Get a file, or ranges of it",
        "Downloads",
        query=downloads.FileQuery,
        answers=_FILE,
        media={200: FILE_MEDIA, 206: FILE_MEDIA},
        errors=CALL_ERRORS,
        reads=RANGE_HEADERS,
        sends=FILE_SENDS,
        scope=READ,
        audit="download",
        command="gateway download support-desk attachments attachment_id=2",
        python=(
            'params = {"attachment_id": 2}\n'
            'file = await gateway.download("support-desk", "attachments", params, to="attachment.bin")\n'
            "print(file.size, file.sha256)"
        ),
    ),
    Route(
        "POST",
        _CONNECTOR + "/upload/{entity}",
        uploads.upload,
        "Upload a file to an application",
        "Execute",
        file_media="application/octet-stream",
        query=uploads.UploadQuery,
        response={200: Answer, 201: UploadView},
        answers={200: "The answer", 201: "The upload, to which PATCH sends the file"},
        errors=CALL_ERRORS,
        reads=("Upload-Complete", "Upload-Length"),
        sends={200: (*_SUNSET, "Location", *_UPLOAD), 201: ("Location", *_UPLOAD)},
        scope=Scope.WRITE,
        audit="upload",
        command="gateway upload jira issue_attachments report.pdf issueIdOrKey=ACME-7",
        python=(
            'answer = await gateway.upload("jira", "issue_attachments", "report.pdf", {"issueIdOrKey": "ACME-7"})\n'
            "print(answer.result)"
        ),
    ),
    Route(
        "GET",
        _CONNECTOR + "/uploads/{upload_id}",
        uploads.get_upload,
        "Get the state of an upload",
        "Execute",
        response=UploadView,
        answers={200: "The upload"},
        errors=CALL_ERRORS,
        sends={200: _UPLOAD},
        scope=Scope.WRITE,
    ),
    Route(
        "PATCH",
        _CONNECTOR + "/uploads/{upload_id}",
        uploads.append,
        "Continue an upload",
        "Execute",
        file_media=uploads.PARTIAL_UPLOAD,
        response={200: Answer},
        answers={200: "The answer", 204: "The part is stored"},
        errors=CALL_ERRORS,
        reads=("Upload-Offset", "Upload-Complete"),
        sends={200: ("Location", *_UPLOAD), 204: ("Location", *_UPLOAD)},
        scope=Scope.WRITE,
        audit="upload",
    ),
    Route(
        "HEAD",
        _CONNECTOR + "/download/{entity}",
        downloads.head_file,
        "Get the headers of a file",
        "Downloads",
        query=downloads.FileQuery,
        answers=_FILE,
        media={200: FILE_MEDIA, 206: FILE_MEDIA},
        errors=CALL_ERRORS,
        reads=RANGE_HEADERS,
        sends=FILE_SENDS,
        scope=READ,
        audit="download",
    ),
    Route(
        "GET",
        _CONNECTOR + "/context-store",
        context_store.context_store_status,
        "Get the state of the synchronized copies",
        "Context store",
        response=ContextStoreView,
        answers={200: "The state of each entity's copy"},
        errors=(409,),
        scope=READ,
        python='print(await gateway.connectors.copies("support-desk"))',
    ),
    Route(
        "POST",
        _CONNECTOR + "/context-store/sync",
        context_store.synchronize,
        "Synchronize the copies now",
        "Context store",
        body=context_store.SynchronizeBody,
        has_optional_body=True,
        response=AcceptedJobView,
        answers={202: "The job"},
        sends={202: ACCEPTED_HEADERS},
        scope=READ,
        audit="context_store.synchronize",
        command="gateway connectors sync $CONNECTOR",
        python='job = await gateway.connectors.sync("support-desk", ["tickets"])\nawait job.wait()',
    ),
)

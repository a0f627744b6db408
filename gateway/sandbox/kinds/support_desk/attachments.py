"""Attachments: the id is the number of a file, so that callers can choose the size."""

from gateway.sandbox import files
from gateway.sandbox.calls import Call, FileReply, Record, Refusal, Reply


def described(call: Call) -> Reply:
    text = call.params["attachment_id"]
    if not text.isdigit() or int(text) == 0:
        raise Refusal(404)
    return Reply({"attachment": record(int(text), call.origin)})


def record(number: int, origin: str) -> Record:
    """The record of the file with this number: 64 is 64 MiB long."""
    known = {
        "id": number,
        "url": f"{origin}/api/v2/attachments/{number}.json",
        "file_name": f"file-{number}.bin",
        "content_url": f"{origin}/attachments/token/{number}/?name=file-{number}.bin",
        "mapped_content_url": f"{origin}/attachments/token/{number}/?name=file-{number}.bin",
        "content_type": "application/octet-stream",
        "size": files.size_of(number),
    }
    scan = {"malware_access_override": False, "malware_scan_result": "malware_not_found"}
    size: Record = {"width": None, "height": None, "inline": False, "deleted": False, "thumbnails": []}
    return {**known, **scan, **size}


def content(call: Call) -> FileReply:
    return FileReply(int(call.params["number"]), f"file-{call.params['number']}.bin")

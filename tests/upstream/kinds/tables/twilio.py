"""The cases of Twilio: bodies are forms, and a list in one repeats its member."""

from typing import Any

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from gateway.kinds.members import FORM
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

ACCOUNT = "AC5ef8732a3c49700934481addd5ce1659"
IN = {"AccountSid": ACCOUNT}
AT = f"/Accounts/{ACCOUNT}"
TO, FROM = "+15558675310", "+15017122661"
SID = "XX2a0747eba6abf96b7e3c3ff0b4530f6e"
ONE = {**IN, "sid": SID}
#: entity → its place below an account
LISTS = {
    "calls": "Calls",
    "messages": "Messages",
    "incoming_phone_numbers": "IncomingPhoneNumbers",
    "recordings": "Recordings",
    "conferences": "Conferences",
    "usage_records": "Usage/Records",
    "addresses": "Addresses",
    "queues": "Queues",
    "transcriptions": "Transcriptions",
    "outgoing_caller_ids": "OutgoingCallerIds",
}
PAGE = {"PageSize": "50"}
SAY = "<Response><Say>Hi</Say></Response>"
HOME = {
    "CustomerName": "Acme",
    "Street": "101 Spear St",
    "City": "San Francisco",
    "Region": "CA",
    "PostalCode": "94105",
    "IsoCountry": "US",
}


NUMBERED = "lists are MediaUrl[0]=a there, which the application does not know; it reads MediaUrl=a&MediaUrl=b"


def form(action: str, params: dict[str, Any], path: str, body: str, **more: Any) -> Call:
    return Call(action, params, path, method="POST", body=body, content_type=FORM, **more)


CALLS = [
    Call("accounts.list", {}, "/Accounts.json", PAGE),
    Call("accounts.list", {"Status": "active", "PageToken": "PA1"}, "/Accounts.json",
         {"Status": "active", **PAGE, "PageToken": "PA1"}),
    Call("accounts.get", {"sid": ACCOUNT}, f"{AT}.json"),
    *(Call(f"{entity}.list", IN, f"{AT}/{place}.json", PAGE) for entity, place in LISTS.items()),
    *(
        Call(f"{entity}.list", {**IN, "PageSize": 5, "PageToken": "PA1"}, f"{AT}/{place}.json",
             {"PageSize": "5", "PageToken": "PA1"})
        for entity, place in LISTS.items()
    ),
    *(
        Call(f"{entity}.get", ONE, f"{AT}/{place}/{SID}.json")
        for entity, place in LISTS.items()
        if entity != "usage_records"
    ),
    Call("calls.list", {**IN, "To": TO, "StartTimeAfter": "2026-02-01", "StartTimeBefore": "2026-02-08"},
         f"{AT}/Calls.json", {"To": TO, "StartTime>": "2026-02-01", "StartTime<": "2026-02-08", **PAGE}),
    Call("messages.list", {**IN, "From": FROM, "DateSentAfter": "2026-02-01T09:00:00Z"}, f"{AT}/Messages.json",
         {"From": FROM, "DateSent>": "2026-02-01T09:00:00Z", **PAGE}),
    Call("recordings.list", {**IN, "CallSid": "CA1", "DateCreatedBefore": "2026-02-01"}, f"{AT}/Recordings.json",
         {"CallSid": "CA1", "DateCreated<": "2026-02-01", **PAGE}),
    Call("conferences.list", {**IN, "Status": "completed"}, f"{AT}/Conferences.json", {"Status": "completed", **PAGE}),
    Call("usage_records.list", {**IN, "Category": "sms", "StartDate": "-30days", "IncludeSubaccounts": False},
         f"{AT}/Usage/Records.json",
         {"Category": "sms", "StartDate": "-30days", "IncludeSubaccounts": "false", **PAGE}),
    form("calls.create", {**IN, "To": TO, "From": FROM, "Twiml": SAY, "Record": True, "Timeout": 20},
         f"{AT}/Calls.json", f"To={TO}&From={FROM}&Twiml={SAY}&Timeout=20&Record=true"),
    form("calls.update", {**ONE, "Status": "completed"}, f"{AT}/Calls/{SID}.json", "Status=completed"),
    form("messages.create", {**IN, "To": TO, "From": FROM, "Body": "Grüße & mehr"}, f"{AT}/Messages.json",
         f"To={TO}&From={FROM}&Body=Grüße & mehr"),
    form("messages.create", {**IN, "To": f"whatsapp:{TO}", "MessagingServiceSid": "MG1",
         "MediaUrl": ["https://example.com/a.png", "https://example.com/b.png"]}, f"{AT}/Messages.json",
         f"To=whatsapp:{TO}&MessagingServiceSid=MG1"
         "&MediaUrl=https://example.com/a.png&MediaUrl=https://example.com/b.png", sdk_differs=NUMBERED),
    form("messages.create", {**IN, "To": TO, "MessagingServiceSid": "MG1", "Body": "Hi", "ScheduleType": "fixed",
         "SendAt": "2026-12-01T09:00:00Z"}, f"{AT}/Messages.json",
         f"To={TO}&MessagingServiceSid=MG1&Body=Hi&ScheduleType=fixed&SendAt=2026-12-01T09:00:00Z"),
    form("messages.update", {**ONE, "Status": "canceled"}, f"{AT}/Messages/{SID}.json", "Status=canceled"),
    form("messages.update", {**ONE, "Body": ""}, f"{AT}/Messages/{SID}.json", "Body="),
    Call("messages.delete", ONE, f"{AT}/Messages/{SID}.json", method="DELETE"),
    form("incoming_phone_numbers.create", {**IN, "AreaCode": "415", "SmsUrl": "https://example.com/sms"},
         f"{AT}/IncomingPhoneNumbers.json", "AreaCode=415&SmsUrl=https://example.com/sms"),
    form("incoming_phone_numbers.update", {**ONE, "FriendlyName": "Sales", "VoiceUrl": ""},
         f"{AT}/IncomingPhoneNumbers/{SID}.json", "FriendlyName=Sales&VoiceUrl="),
    Call("incoming_phone_numbers.delete", ONE, f"{AT}/IncomingPhoneNumbers/{SID}.json", method="DELETE"),
    Call("recordings.delete", ONE, f"{AT}/Recordings/{SID}.json", method="DELETE"),
    form("conferences.update", {**ONE, "AnnounceUrl": "https://example.com/a.mp3"}, f"{AT}/Conferences/{SID}.json",
         "AnnounceUrl=https://example.com/a.mp3"),
    form("addresses.create", {**IN, **HOME, "AutoCorrectAddress": False}, f"{AT}/Addresses.json",
         "CustomerName=Acme&Street=101 Spear St&City=San Francisco&Region=CA&PostalCode=94105&IsoCountry=US"
         "&AutoCorrectAddress=false"),
    form("queues.create", {**IN, "FriendlyName": "Support", "MaxSize": 10}, f"{AT}/Queues.json",
         "FriendlyName=Support&MaxSize=10"),
]  # fmt: skip
REFUSED = [
    Refused("calls.list", {}, "AccountSid", "AccountSid is missing"),
    Refused("calls.list", {**IN, "StartTimeAfter": "yesterday"}, "StartTimeAfter", "^[0-9]{4}"),
    Refused("messages.list", {**IN, "PageSize": 1001}, "PageSize", "at most 1000"),
    Refused("calls.create", {**IN, "To": TO, "Twiml": SAY}, "From", "From is missing"),
    Refused("conferences.list", {**IN, "Status": "running"}, "Status", "in-progress"),
    Refused("incoming_phone_numbers.create", {**IN, "AreaCode": "0415"}, "AreaCode", "^[0-9]{3}$"),
    Refused("messages.update", {**ONE, "Body": "other"}, "Body", "at most 0"),
]
NEXT = f"/2010-04-01{AT}/Messages.json?PageSize=50&Page=1&PageToken=PASM1"
FIRST = f"/2010-04-01{AT}/Messages.json?PageSize=50&Page=0"
PAGED = {"first_page_uri": FIRST, "next_page_uri": NEXT, "page": 0, "page_size": 50}
LAST = {"first_page_uri": FIRST, "next_page_uri": None, "page": 1, "page_size": 50}
ANSWERS = [
    Answer("messages.list", {**PAGED, "messages": [{"sid": SID}]}, [{"sid": SID}], PAGED),
    Answer("messages.list", {**LAST, "messages": []}, [], LAST),
    Answer("messages.create", {"sid": SID, "status": "queued"}, {"sid": SID, "status": "queued"}, None),
    Answer("usage_records.list", {**LAST, "usage_records": [{"category": "sms", "price": "1.5"}]},
           [{"category": "sms", "price": "1.5"}], LAST),
    Answer("accounts.get", {"sid": ACCOUNT, "status": "active"}, {"sid": ACCOUNT, "status": "active"}, None),
]  # fmt: skip
FAILURES = [
    Failure("messages.get", status, {"code": code, "message": "It failed", "more_info": "https://t.example",
            "status": status}, error, str(code), "It failed", **more)
    for status, code, error, more in [
        (400, 21211, UpstreamRejected, {}),
        (401, 20003, ReauthorizationRequired, {}),
        (403, 20006, UpstreamRejected, {}),
        (404, 20404, UpstreamNotFound, {}),
        (429, 20429, UpstreamRateLimited, {"headers": {"retry-after": "7"}, "retry_after": 7}),
        (500, 20500, UpstreamError, {}),
    ]
]  # fmt: skip
PAGES = [
    Pages(
        "messages.list",
        IN,
        [{**PAGED, "messages": [{"sid": "SM2"}]}, {**LAST, "messages": [{"sid": "SM1"}]}],
        [[{"sid": "SM2"}], [{"sid": "SM1"}]],
        [f"/2010-04-01{AT}/Messages.json?PageSize=50", f"/2010-04-01{AT}/Messages.json?PageSize=50&PageToken=PASM1"],
    ),
]
CASES = Cases(
    "twilio",
    "https://api.twilio.com/2010-04-01",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[({"account_sid": "AC1", "auth_token": "t"}, "Basic QUMxOnQ=")],
    check=("/2010-04-01/Accounts.json?PageSize=1", {**LAST, "accounts": [{"sid": ACCOUNT}]}),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[BadCredentials({"account_sid": "AC1"}, "auth_token")],
)

"""The cases of Airtable."""

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

BASE, TABLE, RECORD, COMMENT = "appLkNDICXNqxSDhG", "tbltp8DGLhqbUmjK1", "rec560UJdUtocSouk", "comB5z37Mg9zaEPw6"
IN_TABLE = {"base_id": BASE, "table_id_or_name": TABLE}
OF_RECORD = {**IN_TABLE, "record_id": RECORD}
OF_COMMENT = {**OF_RECORD, "comment_id": COMMENT}
ROWS, ROW = f"/{BASE}/{TABLE}", f"/{BASE}/{TABLE}/{RECORD}"
#: null empties a cell: left out, the cell would stay
CELLS = {"Status": "Done", "Notes": None, "Tags": []}

#: a formula of 26,000 characters
LONG = "OR(" + ",".join(f"{{Id}}='{number:08}'" for number in range(1733)) + ")"

CALLS = [
    Call("bases.list", {"offset": "itr1"}, "/meta/bases", {"offset": "itr1"}),
    Call("bases.list", {}, "/meta/bases"),
    Call("tables.list", {"base_id": BASE}, f"/meta/bases/{BASE}/tables"),
    Call(
        "tables.list",
        {"base_id": BASE, "include": ["visibleFieldIds"]},
        f"/meta/bases/{BASE}/tables",
        {"include[]": "visibleFieldIds"},
    ),
    Call("records.list", {**IN_TABLE, "limit": 5}, ROWS, {"pageSize": "5"}),
    Call(
        "records.list",
        {**IN_TABLE, "view": "Open", "sort": [{"field": "Due", "direction": "desc"}]},
        ROWS,
        {"pageSize": "100", "view": "Open", "sort[0][field]": "Due", "sort[0][direction]": "desc"},
        sdk_differs="sort is one text there, which the application refuses: it reads sort[0][field]",
    ),
    Call(
        "records.list",
        {
            "base_id": BASE,
            "table_id_or_name": "Order lines/2026",
            "pageSize": 50,
            "offset": "itr1/rec1",
            "maxRecords": 120,
            "view": "Grid view",
            "filterByFormula": "{Status}='Open'",
            "sort": [{"field": "Due", "direction": "desc"}, {"field": "Name"}],
            "fields": ["Name", "Due"],
            "cellFormat": "string",
            "timeZone": "Europe/Berlin",
            "userLocale": "en-gb",
            "returnFieldsByFieldId": True,
            "recordMetadata": ["commentCount"],
        },
        f"/{BASE}/Order%20lines%2F2026",
        [
            ("offset", "itr1/rec1"),
            ("pageSize", "50"),
            ("maxRecords", "120"),
            ("view", "Grid view"),
            ("filterByFormula", "{Status}='Open'"),
            ("sort[0][field]", "Due"),
            ("sort[0][direction]", "desc"),
            ("sort[1][field]", "Name"),
            ("fields[]", "Name"),
            ("fields[]", "Due"),
            ("cellFormat", "string"),
            ("timeZone", "Europe/Berlin"),
            ("userLocale", "en-gb"),
            ("returnFieldsByFieldId", "true"),
            ("recordMetadata[]", "commentCount"),
        ],
    ),
    # A longer URL is refused.
    Call(
        "records.list",
        {
            **IN_TABLE,
            "filterByFormula": LONG,
            "sort": [{"field": "Due", "direction": "desc"}],
            "fields": ["Name"],
            "offset": "itr1/rec1",
            "timeZone": "Europe/Berlin",
            "userLocale": "en-gb",
            "recordMetadata": ["commentCount"],
        },
        f"{ROWS}/listRecords",
        {"timeZone": "Europe/Berlin", "userLocale": "en-gb"},
        method="POST",
        body={
            "filterByFormula": LONG,
            "sort": [{"field": "Due", "direction": "desc"}],
            "fields": ["Name"],
            "offset": "itr1/rec1",
            "pageSize": 100,
            "recordMetadata": ["commentCount"],
        },
    ),
    Call("records.create", {**IN_TABLE, "fields": CELLS}, ROWS, method="POST", body={"fields": CELLS}),
    Call(
        "records.create",
        {**IN_TABLE, "fields": CELLS, "typecast": True, "returnFieldsByFieldId": False},
        ROWS,
        method="POST",
        body={"fields": CELLS, "typecast": True, "returnFieldsByFieldId": False},
    ),
    Call("records.get", OF_RECORD, ROW),
    Call("records.get", {**OF_RECORD, "cellFormat": "json"}, ROW, {"cellFormat": "json"}),
    Call("records.update", {**OF_RECORD, "fields": CELLS}, ROW, method="PATCH", body={"fields": CELLS}),
    Call("records.delete", OF_RECORD, ROW, method="DELETE"),
    Call("comments.list", OF_RECORD, f"{ROW}/comments", {"pageSize": "100"}),
    Call(
        "comments.list",
        {**OF_RECORD, "pageSize": 2, "offset": "com1"},
        f"{ROW}/comments",
        {"pageSize": "2", "offset": "com1"},
    ),
    Call(
        "comments.create",
        {**OF_RECORD, "text": "Hello", "parentCommentId": COMMENT},
        f"{ROW}/comments",
        method="POST",
        body={"text": "Hello", "parentCommentId": COMMENT},
    ),
    Call(
        "comments.update",
        {**OF_COMMENT, "text": "Hello"},
        f"{ROW}/comments/{COMMENT}",
        method="PATCH",
        body={"text": "Hello"},
    ),
    Call("comments.delete", OF_COMMENT, f"{ROW}/comments/{COMMENT}", method="DELETE"),
    # Uploads go to a host of their own.
    Call(
        "attachments.create",
        {
            "base_id": BASE,
            "record_id": RECORD,
            "attachment_field_id_or_name": "Files",
            "contentType": "text/plain",
            "file": "SGVsbG8=",
            "filename": "hello.txt",
        },
        f"https://content.airtable.com/v0/{BASE}/{RECORD}/Files/uploadAttachment",
        method="POST",
        body={"contentType": "text/plain", "file": "SGVsbG8=", "filename": "hello.txt"},
    ),
]
REFUSED = [
    Refused("records.list", {**IN_TABLE, "pageSize": 101}, "pageSize", "at most 100"),
    Refused("records.list", {**IN_TABLE, "sort": "Due"}, "sort", "expected array"),
    Refused("records.list", {"base_id": BASE}, "table_id_or_name", "table_id_or_name is missing"),
    Refused("records.update", {**OF_RECORD, "fields": {}}, "fields", "at least 1 members"),
    Refused("records.update", OF_RECORD, "fields", "fields is missing"),
    Refused("comments.create", {**OF_RECORD, "text": ""}, "text", "at least 1 characters"),
    Refused("bases.list", {"pageSize": 5}, "pageSize", "pageSize is not a param"),
]
ANSWERS = [
    Answer(
        "bases.list",
        {"bases": [{"id": BASE, "name": "Shop", "permissionLevel": "create"}], "offset": "itr1"},
        [{"id": BASE, "name": "Shop", "permissionLevel": "create"}],
        {"offset": "itr1"},
    ),
    Answer("tables.list", {"tables": [{"id": TABLE}]}, [{"id": TABLE}], None),
    Answer("records.list", {"records": [{"id": RECORD}]}, [{"id": RECORD}], {"offset": None}),
    Answer("comments.list", {"comments": [], "offset": None}, [], {"offset": None}),
    Answer("records.get", {"id": RECORD, "fields": {}}, {"id": RECORD, "fields": {}}, None),
    Answer("records.delete", {"id": RECORD, "deleted": True}, {"id": RECORD, "deleted": True}, None),
]
FAILURES = [
    Failure(
        "records.update",
        status,
        {"error": {"type": type_, "message": "It cannot be done"}},
        error,
        type_,
        "It cannot be done",
    )
    for status, type_, error in [
        (401, "AUTHENTICATION_REQUIRED", ReauthorizationRequired),
        (403, "INVALID_PERMISSIONS_OR_MODEL_NOT_FOUND", UpstreamRejected),
        (404, "MODEL_NOT_FOUND", UpstreamNotFound),
        (422, "INVALID_MULTIPLE_CHOICE_OPTIONS", UpstreamRejected),
        (500, "SERVER_ERROR", UpstreamError),
    ]
] + [
    Failure("records.get", 404, {"error": "NOT_FOUND"}, UpstreamNotFound, "NOT_FOUND"),
    Failure(
        "records.list",
        429,
        {"errors": [{"error": "RATE_LIMIT_REACHED", "message": "Rate limit exceeded"}]},
        UpstreamRateLimited,
        "RATE_LIMIT_REACHED",
        "Rate limit exceeded",
        retry_after=30,
    ),
]
PAGES = [
    Pages(
        "records.list",
        {**IN_TABLE, "pageSize": 1},
        [{"records": [{"id": "rec1"}], "offset": "itr1/rec1"}, {"records": [{"id": "rec2"}]}],
        [[{"id": "rec1"}], [{"id": "rec2"}]],
        [f"/v0{ROWS}?pageSize=1", f"/v0{ROWS}?offset=itr1%2Frec1&pageSize=1"],
    ),
    Pages(
        "bases.list",
        {},
        [{"bases": [{"id": "app1"}], "offset": "itr1"}, {"bases": [{"id": "app2"}]}],
        [[{"id": "app1"}], [{"id": "app2"}]],
        ["/v0/meta/bases", "/v0/meta/bases?offset=itr1"],
    ),
]
CASES = Cases(
    "airtable",
    "https://api.airtable.com/v0",
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[
        ({"personal_access_token": "pat1"}, "Bearer pat1"),
        ({"access_token": "t", "refresh_token": "r"}, "Bearer t"),
    ],
    check=("/v0/meta/bases", {"bases": []}),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[
        BadCredentials({}, "personal_access_token"),
        BadCredentials({"access_token": "t"}, "refresh_token", "refresh_token"),
    ],
)

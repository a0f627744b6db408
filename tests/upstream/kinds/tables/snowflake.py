"""The cases of Snowflake: one address for all statements, rows without names, partitions of a result."""

from gateway.errors import (
    ReauthorizationRequired,
    UpstreamError,
    UpstreamNotFound,
    UpstreamRateLimited,
    UpstreamRejected,
)
from tests.upstream.kinds.cases import Answer, BadCredentials, Call, Cases, Failure, Pages, Refused

AT = "https://acme-main.snowflakecomputing.com"
STATEMENTS, HANDLE = "/api/v2/statements", "01b2c3d4-0000-1111-0000-222233334444"
ONE = f"{STATEMENTS}/{HANDLE}"
ID = "5b1f6c1e-8d6e-4b3a-9a53-0d9a2f1f7c11"
CONTEXT = {"database": "SALES", "schema": "PUBLIC", "warehouse": "WH", "role": "ANALYST", "timeout": 30,
           "parameters": {"timezone": "UTC"}}  # fmt: skip
BINDINGS = {"1": {"type": "FIXED", "value": "42"}}
SELECT, MANY = "SELECT * FROM users WHERE id = 42", "SELECT * FROM orders LIMIT 100"
INSERT, UPDATE, DELETE = "INSERT INTO t (a) VALUES (1)", "UPDATE t SET a = 2 WHERE id = 7", "DELETE FROM t WHERE id = 9"
RESUBMITTED, AGAIN = {"requestId": ID, "retry": True}, {"requestId": ID, "retry": "true"}
NEXT = {"statementHandle": HANDLE, "partition": 1, "columns": ["ID", "NAME"], "partitionCount": 2}
SHOWN = ("databases", "schemas", "tables", "views", "warehouses", "columns")
CALLS = [
    *(
        Call(f"{each}.list", {}, STATEMENTS, method="POST", body={"statement": f"SHOW {each.upper()}"})
        for each in SHOWN
    ),
    *(
        Call(f"{each}.list", CONTEXT, STATEMENTS, method="POST", body={"statement": f"SHOW {each.upper()}", **CONTEXT})
        for each in SHOWN
    ),
    *(Call(f"{each}.list", NEXT, ONE, {"partition": "1"}) for each in SHOWN),
    Call("tables.list", {"statement": "show terse tables like 'A%' in account"}, STATEMENTS, method="POST",
         body={"statement": "show terse tables like 'A%' in account"},
         sdk_differs="it takes no other SHOW than SHOW TABLES"),
    Call("record.get", {"statement": SELECT, **CONTEXT}, STATEMENTS, method="POST",
         body={"statement": SELECT, **CONTEXT}),
    Call("record.get", {"statement": "SELECT * FROM t WHERE id = ?", "bindings": BINDINGS}, STATEMENTS, method="POST",
         body={"statement": "SELECT * FROM t WHERE id = ?", "bindings": BINDINGS}),
    Call("record.list", {"statement": MANY, **CONTEXT}, STATEMENTS, method="POST", body={"statement": MANY, **CONTEXT}),
    Call("record.list", {"statement": "with a as (select 1) select * from a;"}, STATEMENTS, method="POST",
         body={"statement": "with a as (select 1) select * from a;"}),
    Call("record.list", NEXT, ONE, {"partition": "1"}),
    Call("record.query", {"statement": MANY, "role": "ANALYST"}, STATEMENTS, {"async": "true"}, "POST",
         {"statement": MANY, "role": "ANALYST"}),
    Call("record.create", {"statement": INSERT, **RESUBMITTED}, STATEMENTS, AGAIN, "POST", {"statement": INSERT}),
    Call("record.update", {"statement": UPDATE, **RESUBMITTED}, STATEMENTS, AGAIN, "POST", {"statement": UPDATE}),
    Call("record.delete", {"statement": DELETE, **CONTEXT}, STATEMENTS, method="POST",
         body={"statement": DELETE, **CONTEXT}),
    Call("result_partitions.get", {"statementHandle": HANDLE, "partition": 1, "requestId": ID}, ONE,
         {"partition": "1", "requestId": ID}),
    Call("statements.create", {"statement": "CREATE TABLE t (a INTEGER)", "requestId": ID}, STATEMENTS,
         {"async": "true", "requestId": ID}, "POST", {"statement": "CREATE TABLE t (a INTEGER)"}),
    Call("statements.get", {"statementHandle": HANDLE}, ONE),
    Call("statements.cancel", {"statementHandle": HANDLE}, f"{ONE}/cancel", method="POST"),
]  # fmt: skip
REFUSED = [
    Refused("tables.list", {"statement": "DROP TABLE t"}, "statement", "must match"),
    Refused("record.get", {"statement": "DELETE FROM t"}, "statement", "must match"),
    Refused("record.create", {"statement": "INSERT OVERWRITE INTO t VALUES (1)"}, "statement", "must match"),
    Refused("record.list", {"statementHandle": HANDLE}, "partition", "partition is missing"),
    Refused("record.get", {"statement": SELECT, "timeout": 604_801}, "timeout", "at most 604800"),
    Refused("statements.get", {"statementHandle": "../x"}, "statementHandle", "must match"),
]


def result(rows, names=("ID", "NAME"), partitions=1):
    """The first partition of a result, as Snowflake sends it."""
    columns = [{"name": name, "type": "text", "nullable": True} for name in names]
    info = [{"rowCount": len(rows), "uncompressedSize": 100}] * partitions
    meta = {"numRows": len(rows) * partitions, "format": "jsonv2", "rowType": columns, "partitionInfo": info}
    return {"resultSetMetaData": meta, "data": rows, "code": "090001", "statementHandle": HANDLE}


ADA, BOB = {"ID": "1", "NAME": "Ada"}, {"ID": "2", "NAME": None}
META = {
    "next_page_url": None,
    "request_id": None,
    "statement_handle": HANDLE,
    "partition_info": [{"rowCount": 2, "uncompressedSize": 100}],
    "partition_count": 1,
    "columns": ["ID", "NAME"],
    "column_types": ["text", "text"],
}
ROWS = [["1", "Ada"], ["2", None]]
ANSWERS = [
    Answer("record.list", result(ROWS), [ADA, BOB], META),
    Answer("tables.list", result(ROWS), [ADA, BOB], {**META, "num_rows": 2}),
    Answer("record.get", result(ROWS), ADA, None),
    Answer("record.get", result([["1", "2"]], ("ID", "ID")), {"ID": "1", "ID_2": "2"}, None),
    Answer("result_partitions.get", {"data": ROWS}, {"data": ROWS}, None),
]
FAILURES = [
    Failure("record.list", status, {"code": code, "message": "It failed", "statementHandle": HANDLE}, error, code,
            "It failed", HANDLE, **more)
    for status, code, error, more in [
        (400, "390142", UpstreamRejected, {}),
        (401, "390303", ReauthorizationRequired, {}),
        (403, "390422", UpstreamRejected, {}),
        (408, "000630", UpstreamRejected, {}),
        (422, "000904", UpstreamRejected, {}),
        (422, "000709", UpstreamNotFound, {}),
        (429, "390505", UpstreamRateLimited, {"headers": {"retry-after": "7"}, "retry_after": 7}),
        (500, "390000", UpstreamError, {}),
    ]
]  # fmt: skip
PAGES = [
    Pages(
        action,
        {"statement": statement},
        [result([["1", "Ada"]], partitions=3), {"data": [["2", None]]}, {"data": [["3", "Eve"]]}],
        [[ADA], [BOB], [{"ID": "3", "NAME": "Eve"}]],
        [STATEMENTS, f"{ONE}?partition=1", f"{ONE}?partition=2"],
        [{"statement": statement}, None, None],
        [{"Link": f'<{ONE}?requestId={ID}&partition=0>; rel="first",<{ONE}?partition=1>; rel="next"'}, {}, {}],
    )
    for action, statement in (("record.list", MANY), ("tables.list", "SHOW TABLES IN ACCOUNT"))
]
CASES = Cases(
    "snowflake",
    AT,
    CALLS,
    REFUSED,
    FAILURES,
    authorizations=[({"programmatic_access_token": "t"}, "Bearer t")],
    check=(STATEMENTS, result([["SALES"]], ("name",))),
    pages=PAGES,
    answers=ANSWERS,
    bad_credentials=[BadCredentials({}, "programmatic_access_token")],
    environment={"account": "acme-main"},
    headers={"X-Snowflake-Authorization-Token-Type": "PROGRAMMATIC_ACCESS_TOKEN"},
)

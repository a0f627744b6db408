"""A text of SQL is one statement, however it is commented and quoted, or it is refused."""

import pytest

from gateway.upstream.sql_statements import fault_of

ONE = [
    "SELECT 1",
    "SELECT 1;",
    "SELECT 1; -- the end\n",
    "SELECT 1 -- ; one\r\n + 1",
    "SELECT ';' , \"a;b\" FROM t",
    "SELECT 'it''s; \\\\' , '\\'; ' FROM t",
    "SELECT $$ ; ' $$, $1",
    "SELECT a - b / c, x -> x + 1",
    "SELECT /* ; ' */ 1 // ; '\n",
    "WITH a AS (SELECT 'call' AS \"CALL\") SELECT * FROM a -- call\n",
    "SELECT call FROM t",
]
SEVERAL = [
    ("SELECT 1; DROP TABLE t", "second statement"),
    ("SELECT 1;;", "second statement"),
    ("SELECT 1 -- '\n; DROP TABLE t -- '", "second statement"),
    ("SELECT 'a\\\\'; DROP TABLE t -- '", "second statement"),
    ("SELECT 1 /* ' */; DROP TABLE t /* ' */", "second statement"),
    ("SELECT 1 ->> DELETE FROM t", "chains statements"),
    ("WITH p AS PROCEDURE () LANGUAGE SQL AS $$ … $$ CALL p()", "calls a procedure"),
    ("WITH p AS PROCEDURE () LANGUAGE SQL AS $$ … $$ /**/call/**/p()", "calls a procedure"),
    ("SELECT 'open", "' without a clear end"),
    ('SELECT "open', '" without a clear end'),
    ("SELECT /* open", "/\\* without a clear end"),
    ("SELECT $$ open", "without a clear end"),
    ("SELECT 1 -- a\r; DROP TABLE t", "-- without a clear end"),
    ("SELECT 1 // a\u2028; DROP TABLE t", "// without a clear end"),
]


@pytest.mark.parametrize("text", ONE)
def test_one_statement_is_sent(text):
    assert fault_of(text) is None


@pytest.mark.parametrize(("text", "said"), SEVERAL)
def test_a_text_that_may_do_more_is_refused_with_the_reason(text, said):
    found = fault_of(text)

    assert found is not None
    assert said.replace("\\", "") in found

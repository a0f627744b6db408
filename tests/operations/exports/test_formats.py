"""Records as lines of a file: columns, cells, and what a spreadsheet must not take for a formula."""

import csv
import io

import msgspec
import pytest

from gateway.contract.exports import FileFormat
from gateway.operations.exports.formats import (
    MAX_CELLS,
    MAX_CHARACTERS,
    cell,
    chunks_of,
    csv_header,
    csv_rows,
    members_of,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        (None, ""),
        (True, "true"),
        (-5, "-5"),
        ({"a": [1, "=x"]}, '{"a":[1,"=x"]}'),
        ([], "[]"),
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\tx", "'\tx"),
        ("\rx", "'\rx"),
        (" =1", " =1"),
        ("a;b", "a;b"),
        ("a;=1+1;-2", "a;'=1+1;'-2"),
        ('a;"=1', "a;\"'=1"),
        ("\n=1", "'\n'=1"),
        ("\uff1d1", "'\uff1d1"),
        ("\uff0b1", "'\uff0b1"),
        ("\uff0d1", "'\uff0d1"),
        ("\uff20x", "'\uff20x"),
        ("a;\uff0d1\r\uff20x", "a;'\uff0d1\r'\uff20x"),
        ("a;=1", "a;'=1"),
        ("a;-1;b", "a;'-1;b"),
        ("a\n=1", "a\n'=1"),
        ("a\r\n@SUM(A1)", "a\r\n'@SUM(A1)"),
        ("a\n\uff1d1", "a\n'\uff1d1"),
        ("list:\n- item\n+ item", "list:\n- item\n+ item"),
        ("a=b; c=d", "a=b; c=d"),
        ({"a": "x;=1"}, '{"a":"x;\'=1"}'),
    ],
)
def test_a_cell_is_the_value_and_never_a_formula(value, text):
    assert cell(value) == text


def test_columns_are_the_members_in_the_order_in_which_they_come():
    assert list(members_of(msgspec.Raw(b'{"id":1,"b":2}'))) == ["id", "b"]
    assert list(members_of(msgspec.Raw(b"7"))) == ["value"]


def test_rows_have_the_selected_columns_in_their_order():
    lines = '{"id":1,"user":{"name":"Ada"},"tags":[{"t":"a"},{"t":"b"}],"n":1.10}\n{"id":2}\n'

    rows = csv_rows(lines, ["user.name", "id", "tags.t", "n"])

    assert rows == 'Ada,1,"[""a"",""b""]",1.10\r\n,2,,\r\n'


def test_texts_with_commas_quotes_and_line_breaks_come_back_as_they_were():
    said = 'a, "b"\nc\r\nd'

    rows = csv_rows(msgspec.json.encode({"said": said}).decode() + "\n", ["said"])

    assert next(csv.reader(io.StringIO(rows, newline=""))) == [said]


def test_a_text_with_a_semicolon_is_quoted():
    assert csv_rows('{"said":"a;b","id":1}\n', ["said", "id"]) == '"a;b",1\r\n'


def test_a_file_for_excel_begins_with_a_byte_order_mark():
    assert csv_header(["id"], FileFormat.CSV_BOM) == "\ufeffid\r\n"
    assert csv_header(["id"]) == "id\r\n"


def test_a_text_with_a_unicode_line_separator_is_one_row():
    rows = csv_rows('{"said":"a\u2028b"}\n', ["said"])

    assert rows == "a\u2028b\r\n"


@pytest.mark.parametrize("name", ["=x", "+x", "-x", "@x", "\tx", "\uff1dx", "\uff0bx", "\uff0dx", "\uff20x"])
def test_a_column_that_begins_like_a_formula_is_guarded(name: str):
    assert csv_header(["id", name]) == f"id,'{name}\r\n"


@pytest.mark.parametrize(
    ("columns", "lines", "chunks"),
    [
        (3, "{}\n" * 5, ["{}\n" * 5]),
        (MAX_CELLS // 2, "{}\n" * 5, ["{}\n" * 2, "{}\n" * 2, "{}\n"]),
        (3 * MAX_CELLS, "{}\n" * 2, ["{}\n", "{}\n"]),
        (1, "1\n" + "2" * MAX_CHARACTERS + "\n3\n", ["1\n", "2" * MAX_CHARACTERS + "\n", "3\n"]),
        (0, "{}\n", ["{}\n"]),
        (1, "{}", ["{}"]),
        (1, "", []),
    ],
)
def test_rows_are_converted_in_chunks_of_bounded_cells_and_characters(columns: int, lines: str, chunks: list[str]):
    assert list(chunks_of(lines, columns)) == chunks

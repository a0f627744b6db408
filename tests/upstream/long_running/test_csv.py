"""Responses of CSV as JSON."""

import csv
import threading
import time

import msgspec
import pytest

from gateway.errors import UpstreamTooLarge
from gateway.upstream.long_running.result_pages import json_of_csv
from tests.harness.blocked_loop import PART


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (b"", []),
        (b"Id,Name\r\n", []),
        (
            b'\xef\xbb\xbfId,Name\r\n1,a\r\n\r\n2,"b, ""c""\nd"\r\n',
            [{"Id": "1", "Name": "a"}, {"Id": "2", "Name": 'b, "c"\nd'}],
        ),
        (b"Id,Name\n1\n1,2,3\n", [{"Id": "1"}, {"Id": "1", "Name": "2"}]),
    ],
)
def test_rows_have_the_names_of_the_first_line(text: bytes, rows: list[dict[str, str]]):
    assert msgspec.json.decode(json_of_csv(text)) == rows


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"n" * 1_000_000 + b"\n" + b"a\n" * 1_000_000, id="a long name that each row repeats"),
        pytest.param(b"name\n" + b"a\n" * 8_000_000, id="very many rows"),
    ],
)
def test_rows_that_would_take_much_memory_are_refused(text: bytes):
    begun = time.process_time()

    with pytest.raises(UpstreamTooLarge):
        json_of_csv(text)

    assert time.process_time() - begun < 20


def test_what_is_no_csv_is_an_error():
    with pytest.raises(csv.Error):
        json_of_csv(b'a\n"b" c\n')


def test_a_line_with_very_many_commas_is_refused():
    assert json_of_csv(b"," * 100_000 + b"\n") == b"[]"
    with pytest.raises(UpstreamTooLarge, match="commas"):
        json_of_csv(b"a,b\n1,2\n" + b"," * 100_001)


def test_empty_lines_do_not_keep_other_threads_from_running():
    reading = threading.Thread(target=json_of_csv, args=(b"a\n" + b"\n" * (16 << 20),))
    longest, begun = 0.0, time.perf_counter()
    last = begun
    reading.start()
    while reading.is_alive():
        now = time.perf_counter()
        longest, last = max(longest, now - last), now

    assert longest <= PART * (last - begun)

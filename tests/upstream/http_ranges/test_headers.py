"""The headers of a file: a closed list, each value safe."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from gateway.upstream.http_ranges.headers import content_disposition, media_type, representation_headers, safe_name


def test_only_labels_of_the_file_are_passed_on():
    upstream = CIMultiDict(
        {
            "content-type": "application/pdf",
            "etag": '"a"',
            "last-modified": "Tue, 15 Nov 1994 12:45:26 GMT",
            "content-disposition": 'attachment; filename="a.pdf"',
            "content-length": "5",
            "content-range": "bytes 0-4/5",
            "accept-ranges": "bytes",
            "set-cookie": "session=1",
            "connection": "keep-alive, x-internal",
            "keep-alive": "timeout=5",
            "transfer-encoding": "chunked",
            "trailer": "x",
            "upgrade": "h2c",
            "te": "trailers",
            "proxy-authenticate": "Basic",
            "www-authenticate": "Basic",
            "strict-transport-security": "max-age=1",
            "access-control-allow-origin": "*",
            "location": "https://example.com/",
            "server": "x",
            "x-request-id": "1",
        }
    )

    passed_on = representation_headers(upstream)

    assert passed_on == {
        "Content-Type": "application/pdf",
        "ETag": '"a"',
        "Last-Modified": "Tue, 15 Nov 1994 12:45:26 GMT",
        "Content-Disposition": 'attachment; filename="a.pdf"',
    }


def test_a_file_without_labels_is_unknown_bytes():
    assert representation_headers({}) == {"Content-Type": "application/octet-stream"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ETag", "a"),
        ("ETag", '"a'),
        ("ETag", '"a"\r\nX: y'),
        ("ETag", 'w/"a"'),
        ("Last-Modified", "yesterday"),
        ("Last-Modified", ""),
        ("Last-Modified", "Tue, 15 Nov 1994 12:45:26 GMT\r\nX: y"),
        ("Content-Encoding", "identity"),
        ("Content-Encoding", ""),
        ("Content-Encoding", "gzip\r\nX: y"),
    ],
)
def test_a_label_that_says_nothing_sound_is_dropped(name, value):
    assert name not in representation_headers({name: value})


@pytest.mark.parametrize("coding", ["gzip", "br", "gzip, br"])
def test_bytes_that_are_coded_against_our_asking_are_labelled_so(coding):
    assert representation_headers({"Content-Encoding": coding})["Content-Encoding"] == coding


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("text/plain", "text/plain"),
        ("text/html; charset=utf-8", "text/html; charset=utf-8"),
        ('multipart/byteranges; boundary="a b"', 'multipart/byteranges; boundary="a b"'),
        ("application/vnd.oasis.opendocument.text", "application/vnd.oasis.opendocument.text"),
        (None, "application/octet-stream"),
        ("", "application/octet-stream"),
        ("text", "application/octet-stream"),
        ("text/", "application/octet-stream"),
        ("text/html\r\nSet-Cookie: a=b", "application/octet-stream"),
        ("text/html;\r\n charset=x", "application/octet-stream"),
        ("text/html, text/plain", "application/octet-stream"),
        ("text/ht\u00e9ml", "application/octet-stream"),
    ],
)
def test_a_media_type_is_well_formed_or_unknown_bytes(value, expected):
    assert media_type(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ("", "attachment"),
        ("attachment", "attachment"),
        ("inline", "inline"),
        ("INLINE", "inline"),
        ("form-data; name=x", "attachment"),
        ('attachment; filename="report.pdf"', 'attachment; filename="report.pdf"'),
        ("inline; filename=report.pdf", 'inline; filename="report.pdf"'),
        ("Attachment ; FileName = report.pdf", 'attachment; filename="report.pdf"'),
        (r'attachment; filename="a\"b.txt"', 'attachment; filename="a_b.txt"'),
        ('attachment; filename="../../etc/passwd"', 'attachment; filename="passwd"'),
        (r'attachment; filename="C:\\temp\\x.doc"', 'attachment; filename="x.doc"'),
        ('attachment; filename=".."', "attachment"),
        ('attachment; filename="/"', "attachment"),
        ('attachment; filename=".bashrc"', 'attachment; filename="bashrc"'),
        ('attachment; filename="a;b.txt"', 'attachment; filename="a;b.txt"'),
        ('attachment; filename="a\r\nSet-Cookie: x=y"', "attachment"),
        (
            'attachment; filename="100% sure.txt"',
            "attachment; filename=\"100_ sure.txt\"; filename*=UTF-8''100%25%20sure.txt",
        ),
        (
            "attachment; filename*=UTF-8''%e2%82%ac%20rates",
            "attachment; filename=\"_ rates\"; filename*=UTF-8''%E2%82%AC%20rates",
        ),
        (
            "attachment; filename=\"EURO\"; filename*=utf-8'en'%e2%82%ac",
            "attachment; filename=\"_\"; filename*=UTF-8''%E2%82%AC",
        ),
        ("attachment; filename*=iso-8859-1''caf%e9", "attachment; filename=\"caf_\"; filename*=UTF-8''caf%C3%A9"),
        ("attachment; filename*=UTF-8''..%2f..%2fetc%2fpasswd", 'attachment; filename="passwd"'),
        ("attachment; filename*=UTF-8''a%0d%0ab.txt", 'attachment; filename="ab.txt"'),
        ("attachment; filename*=UTF-8''%ff%fe.txt", 'attachment; filename="__.txt"'),
        ("attachment; filename=a.txt; filename*=utf-7''x", 'attachment; filename="a.txt"'),
        ("attachment; filename=a.txt; filename*=broken", 'attachment; filename="a.txt"'),
        ('attachment; filename="caf\u00e9.pdf"', "attachment; filename=\"caf_.pdf\"; filename*=UTF-8''caf%C3%A9.pdf"),
        ('attachment; filename="caf\udce9.pdf"', 'attachment; filename="caf.pdf"'),
        ('attachment; filename="invoice\u202efdp.exe"', 'attachment; filename="invoicefdp.exe"'),
        ('attachment; filename="unterminated', "attachment"),
    ],
)
def test_a_disposition_keeps_a_safe_name_only(value, expected):
    assert content_disposition(value) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a" * 300 + ".pdf", "a" * 251 + ".pdf"),
        ("\u20ac" * 100 + ".pdf", "\u20ac" * 83 + ".pdf"),
        ("a." + "b" * 300, "a." + "b" * 253),
        ("e\u0301.txt", "\u00e9.txt"),
        ('a<b>:c|d?e*"f', "a_b__c_d_e__f"),
        ("  spaces.txt. ", "spaces.txt"),
        ("folder/" * 1_000 + "b.txt", "b.txt"),
        ("b" * 5_000 + ".txt", "b" * 251 + ".txt"),
        ("b" * 300 + "\u0301\u0316" * 4_000_000 + ".txt", "b" * 251 + ".txt"),
    ],
)
def test_a_name_is_made_safe_and_short(name, expected):
    assert safe_name(name) == expected


@given(st.text())
def test_no_name_escapes_its_header_or_its_folder(name):
    disposition = content_disposition(f'attachment; filename="{name}"')
    safe = safe_name(name)

    assert disposition.isascii()
    assert disposition.isprintable()
    assert disposition.count('"') in (0, 2)
    assert not set(safe) & set('/\\"\r\n\0')
    assert safe not in (".", "..")
    assert len(safe.encode()) <= 255

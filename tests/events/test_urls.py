"""The URLs to which webhooks may be delivered."""

import pytest
from yarl import URL

from gateway.events.urls import url_fault


@pytest.mark.parametrize(
    "url",
    [
        "https://app.example.com",
        "https://app.example.com:8443/hooks?a=%20b",
        "https://app.example.com./hooks",
        "https://xn--bcher-kva.example/hooks",
        "https://3com.example/hooks",
        "https://8.8.8.8/",
        "https://[2606:4700:4700::1111]/hooks",
        "http://receiver.internal:8000/hooks",
    ],
)
def test_a_public_https_url_and_an_allowed_origin_have_no_fault(url):
    assert url_fault(url, [URL("http://receiver.internal:8000")]) is None


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("https://app.example.com/%zz", "format"),
        ("https://app.example.com/100%", "format"),
        ("https://app.example.com/a b", "format"),
        ("https://bücher.example/", "format"),
        ("https://app.example.com/#part", "format"),
        ("https://user@app.example.com/", "format"),
        ("http://app.example.com/", "scheme"),
        ("https://[::ffff:127.0.0.1]/", "address"),
        ("https://[64:ff9b::7f00:1]/", "address"),
        ("https://127.1/", "address"),
        ("https://0x7f.0.0.1/", "address"),
        ("https://127.0x1/", "address"),
        ("https://127.0.0.1./", "address"),
        ("https://localhost./", "address"),
        ("https://db.internal./", "address"),
        ("https://printer.LOCAL/", "address"),
        ("https://receiver.lan/", "address"),
    ],
)
def test_any_other_url_is_refused(url, code):
    fault = url_fault(url, [])

    assert fault is not None
    assert fault.code == code

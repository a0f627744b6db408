"""Content codings undone in small steps; what is cut short or damaged never looks complete."""

import gzip
import zlib
from functools import partial

import pytest

from gateway.errors import UpstreamInvalidResponse, UpstreamTruncated
from gateway.upstream.content_coding import STEP, decoder_of

#: without the time: cases are told apart by their bytes, and must be the same in each process that collects them
packed = partial(gzip.compress, mtime=0)
TEXT = b'{"a": [' + b"1, " * 100_000 + b"1]}"
RAW = zlib.compressobj(wbits=-zlib.MAX_WBITS)
RAW_DEFLATE = RAW.compress(TEXT) + RAW.flush()


def decoded(encoding: str, body: bytes, size: int) -> bytes:
    """The body, fed in pieces of so many bytes."""
    decoder = decoder_of(encoding)
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    text = b"".join(step for piece in pieces for step in decoder.decoded(piece))
    decoder.end()
    return text


@pytest.mark.parametrize("size", [1, 7, 1000, 1 << 20])
@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("", TEXT),
        ("identity", TEXT),
        ("gzip", packed(TEXT)),
        (" GZIP ", packed(TEXT)),
        ("x-gzip", packed(TEXT)),
        ("gzip", packed(TEXT[:1000]) + packed(b"") + packed(TEXT[1000:])),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", RAW_DEFLATE),
        ("deflate", zlib.compress(TEXT) + b"and more"),
    ],
)
def test_a_body_is_what_was_encoded_however_it_comes(encoding, body, size):
    assert decoded(encoding, body, size) == TEXT


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_an_empty_body_is_empty(encoding):
    assert decoded(encoding, b"", 10) == b""


@pytest.mark.parametrize("size", [1, 1 << 20])
@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", packed(TEXT)[:-1]),
        ("gzip", packed(TEXT)[:20]),
        ("gzip", packed(TEXT) + packed(TEXT)[:-1]),
        ("gzip", packed(TEXT)[:-8] + bytes(8)),
        ("gzip", b"not gzip"),
        ("gzip", packed(TEXT) + b"no member"),
        ("deflate", zlib.compress(TEXT)[:-1]),
        ("deflate", RAW_DEFLATE[:-1]),
    ],
)
def test_what_is_cut_short_or_damaged_is_truncated(encoding, body, size):
    with pytest.raises(UpstreamTruncated):
        decoded(encoding, body, size)


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "compress", "?"])
def test_a_coding_that_was_not_requested_is_refused(encoding):
    with pytest.raises(UpstreamInvalidResponse, match="content coding"):
        decoder_of(encoding)


def test_a_bomb_is_unpacked_no_further_than_it_is_read():
    steps = decoder_of("gzip").decoded(gzip.compress(bytes(4 * STEP)))

    assert [len(next(steps)) for _ in range(3)] == [STEP] * 3


def test_members_without_end_are_refused():
    with pytest.raises(UpstreamInvalidResponse, match="members"):
        decoded("gzip", gzip.compress(b"") * 1000, 1 << 20)

"""Streams of server-sent events (WHATWG HTML §9.2); `tests/upstream/test_mcp_messages.py` has more forms of lines."""

from gateway.foundation.event_stream import EventStream


def test_an_event_has_its_name_and_its_lines_of_data():
    stream = EventStream()

    events = list(stream.feed(b": hello\nevent: progress\ndata: a\ndata:b\n\nretry: 1\n\ndata\n\n"))

    assert [tuple(each) for each in events] == [("progress", b"a\nb"), ("message", b"")]


def test_a_stream_resumes_after_the_last_event_that_was_complete():
    stream = EventStream("7")
    list(stream.feed(b"id: 8\ndata: a\n\nid: 9\ndata: b\n"))

    stream.restart()
    begun_anew = stream.last_id
    events = list(stream.feed(b"data: c\n\n"))

    assert (begun_anew, stream.last_id) == ("8", "8")
    assert [each.data for each in events] == [b"c"]

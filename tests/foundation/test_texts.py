"""Texts of strangers: what a reader does not see is left out, and what belongs to a language stays."""

import pytest

from gateway.foundation.texts import is_visible, visible

TEXTS = {
    "plain": ("Reads an issue.", "Reads an issue."),
    "lines": ("One\n\ttwo\r\n", "One\n\ttwo\r\n"),
    "another script": ("課題を作成します。 Создаёт", "課題を作成します。 Создаёт"),
    "joined letters": ("می\u200cخواهم", "می\u200cخواهم"),
    "a space of typography": ("1\u00a0000\u2009€", "1\u00a0000\u2009€"),
    "an escape of a terminal": ("\x1b[2J\x1b]0;owned\x07", "[2J]0;owned"),
    "marks of direction": ("a\u202eb\u2066c\u200f", "abc"),
    "no width": ("a\u200bb\ufeffc\u2060d", "abcd"),
    "tags": ("a\U000e0041\U000e0042b", "ab"),
    "variation selectors": ("a\ufe01\U000e0101b", "ab"),
    "fillers": ("a\u3164\u115f\uffa0b", "ab"),
    "NUL and C1": ("a\0\x85b", "ab"),
}


@pytest.mark.parametrize(("text", "seen"), TEXTS.values(), ids=TEXTS)
def test_a_text_has_only_what_a_reader_sees(text: str, seen: str):
    assert visible(text) == seen
    assert is_visible(text) == (text == seen)

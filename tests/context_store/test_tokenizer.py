"""Words and case are the same in Python and in Postgres."""

import sys

import pytest

from gateway.context_store.tokenizer import MAX_WORD, SEPARATORS, folded, words

CASES = [
    ("", []),
    ("--- !!", []),
    ("Printer on fire", ["printer", "on", "fire"]),
    ("ann.lee@example.com", ["ann", "lee", "example", "com"]),
    ("snake_case-and/or\\more", ["snake", "case", "and", "or", "more"]),
    ("it’s “quoted” – really…", ["it", "s", "quoted", "really"]),
    ("Größe ÉTÉ", ["größe", "été"]),
    ("ΟΔΟΣ οδος", ["οδοσ", "οδοσ"]),
    ("İstanbul", ["istanbul"]),
    ("日本語、テスト。", ["日本語", "テスト"]),
    ("a1 2b", ["a1", "2b"]),
    ("x" * 70 + " y", ["x" * MAX_WORD, "y"]),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_text_is_cut_into_words(text, expected):
    assert words(text) == expected


async def test_postgres_folds_every_letter_alike(connection):
    letters = [
        chr(code)
        for code in range(1, sys.maxunicode + 1)
        if not 0xD800 <= code <= 0xDFFF and chr(code).lower() != chr(code)
    ]

    theirs = await connection.fetchval(
        "SELECT array_agg(context_fold(letter) ORDER BY place)"
        " FROM unnest($1::text[]) WITH ORDINALITY AS t (letter, place)",
        letters,
    )

    assert theirs == [folded(letter) for letter in letters]


async def test_postgres_cuts_at_the_same_characters(connection):
    text = "".join(f"a{chr(code)}" for code in range(1, 0x10000) if not 0xD800 <= code <= 0xDFFF) + "a"
    pieces = [text[start : start + 2_000] for start in range(0, len(text), 2_000)]

    theirs = await connection.fetch(
        "SELECT array(SELECT left(word, 64) FROM regexp_split_to_table(context_fold(piece), $2) AS word"
        " WHERE word <> '') AS words FROM unnest($1::text[]) AS piece",
        pieces,
        f"[{SEPARATORS}]+",
    )

    assert [row["words"] for row in theirs] == [words(piece) for piece in pieces]

"""BM25 over counts of stems."""

from collections import Counter

from gateway.kinds.find.bm25 import Bm25

DOCUMENTS = [Counter(["ticket", "list"]), Counter(["ticket", "ticket", "close"]), Counter(["user", "list"])]


def test_a_rare_stem_decides_before_a_common_one():
    scores = Bm25(DOCUMENTS).scores({"close": 1.0, "list": 1.0})

    assert scores[1] == 1.0
    assert scores[0] == scores[2] < 1.0


def test_a_stem_counts_by_its_weight_in_the_question():
    scores = Bm25(DOCUMENTS).scores({"user": 1.0, "close": 0.1})

    assert scores[2] == 1.0
    assert 0 < scores[1] < 0.2


def test_no_common_stem_is_no_score():
    assert Bm25(DOCUMENTS).scores({"invoice": 1.0}) == [0.0, 0.0, 0.0]
    assert Bm25([]).scores({"invoice": 1.0}) == []

"""Similarity of meaning, by the table of vectors that an optional package has."""

import pytest

from gateway.kinds.find.vectors import Similarity, folder, shared_vectors

pytestmark = pytest.mark.skipif(folder() is None, reason="the extra `semantic` is not installed")
TEXTS = [["list tickets", "customers' requests"], ["book a meeting room"], ["close the invoice"]]


def best(question):
    scores = Similarity(shared_vectors(), TEXTS).scores(question)
    return scores.index(max(scores))


@pytest.mark.parametrize(
    ("question", "place"), [("reserve a place to meet", 1), ("enquiries of buyers", 0), ("the bill is settled", 2)]
)
def test_a_question_in_other_words_is_closest_to_the_text_that_means_the_same(question, place):
    assert best(question) == place


def test_a_question_that_is_a_text_is_equal_to_it():
    assert Similarity(shared_vectors(), TEXTS).scores("book a meeting room")[1] == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("question", ["", " ", "\x00", "é" * 100])
def test_every_text_has_scores_from_0_to_1(question):
    assert all(0 <= score <= 1 for score in Similarity(shared_vectors(), TEXTS).scores(question))


def test_a_process_has_one_table():
    assert shared_vectors() is shared_vectors()

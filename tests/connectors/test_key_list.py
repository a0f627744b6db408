"""NotificationListener of a key list."""

import pytest

from gateway.foundation.vault.key_list import added, promoted, text_of, without
from gateway.foundation.vault.vault import KeyListError, parse_keys

A, B, C = ("a", bytes(32)), ("b", bytes(range(32))), ("c", bytes(range(32, 64)))


def test_a_list_is_written_as_it_is_read():
    assert parse_keys(text_of([A, B])) == [A, B]


def test_a_new_key_seals_at_once_or_waits_on_standby():
    assert added([A, B], C, is_standby=False) == [C, A, B]
    assert added([A, B], C, is_standby=True) == [A, B, C]


def test_a_promoted_key_seals_and_the_others_still_open():
    assert promoted([A, B, C], "c") == [C, A, B]
    assert promoted([A, B], "a") == [A, B]


def test_a_key_that_wraps_nothing_can_go():
    assert without([A, B, C], "b", rows=0) == [A, C]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda: added([A], A, is_standby=False), "there is a key a already"),
        (lambda: promoted([A, B], "x"), "there is no key x; the list has a, b"),
        (lambda: without([A, B], "x", 0), "there is no key x"),
        (lambda: without([A, B], "a", 0), "a is the key that seals"),
        (lambda: without([A, B], "b", 7), "b still wraps 7 credentials; run `gateway keys rotate` first"),
    ],
)
def test_a_change_that_would_lose_credentials_is_refused(change, said):
    with pytest.raises(KeyListError, match=said):
        change()

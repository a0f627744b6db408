"""Every change of an exported audit log is found."""

import base64
import json
import random

import pytest

from gateway.foundation.proof import FIRST, Signer, hash_of, verified

SIGNER, OTHER = Signer(b"k" * 32), Signer(b"o" * 32)


def exported(count: int = 4, first: int = 1, previous: str = FIRST) -> list[str]:
    """An exported log with a checkpoint after every second entry and at the end."""
    lines = []
    for seq in range(first, first + count):
        kind = ("intent", "settlement", "event")[seq % 3]
        entry = {"seq": seq, "kind": kind, "call_id": f"c{seq // 3}", "what": "tickets.update", "previous": previous}
        previous = hash_of(entry)
        lines.append(json.dumps({**entry, "hash": previous}))
        if seq % 2 == 0 or seq == first + count - 1:
            lines.append(json.dumps(SIGNER.checkpoint(seq, previous, "2026-03-01T09:00:00Z")))
    return lines


def check(lines):
    return verified(lines, [SIGNER.public_key])


@pytest.mark.parametrize("count", [1, 2, 7])
def test_an_unaltered_log_is_whole(count):
    found = check(exported(count))

    assert (found.fault, found.entries) == (None, count)


def test_a_log_may_begin_after_entries_that_were_pruned():
    assert check(exported(3, first=8, previous="a" * 64)).fault is None


def test_a_write_without_settlement_is_unknown():
    assert check(exported(3)).unknown == ["c1"]
    assert check(exported(4)).unknown == []


@pytest.mark.parametrize("left_out", range(6))
def test_a_line_that_was_left_out_is_found(left_out):
    lines = exported()

    if left_out == 0:  # earlier entries may have been pruned, so that a file says with which it begins
        assert (check(lines).first, check(lines[1:]).first) == (1, 2)
        return
    is_inner_checkpoint = left_out == 2
    assert (check(lines[:left_out] + lines[left_out + 1 :]).fault is None) is is_inner_checkpoint


def test_lines_that_changed_places_or_were_repeated_are_found():
    lines = exported()

    assert check([lines[1], lines[0], *lines[2:]]).fault is not None
    assert check([lines[0], *lines]).fault is not None


def test_an_entry_that_was_put_in_with_a_right_hash_is_found():
    lines = exported()
    entry = {**json.loads(lines[1]), "what": "tickets.delete"}
    entry["hash"] = hash_of({name: value for name, value in entry.items() if name != "hash"})

    assert "entries were left out, put in or altered" in (check([lines[0], json.dumps(entry), *lines[2:]]).fault or "")


def test_a_chain_that_another_key_signed_is_not_trusted():
    assert "no given key signed" in (verified(exported(), [OTHER.public_key]).fault or "")
    assert verified(exported(), [OTHER.public_key, SIGNER.public_key]).fault is None


def test_every_altered_byte_is_found():
    text = "\n".join(exported()) + "\n"
    chance = random.Random(7)
    for place in range(len(text)):
        other = chance.choice([each for each in '0a":,{}\n ' if each != text[place]])
        altered = text[:place] + other + text[place + 1 :]
        found = check(altered.splitlines())

        # Space outside of texts, and base64 that decodes to the same bytes, change nothing that is said.
        same = _said(altered) == _said(text)
        assert (found.fault is None) is same, (place, altered[max(place - 20, 0) : place + 20])


@pytest.mark.parametrize("line", range(6))
def test_a_member_that_stands_twice_is_found_though_one_of_them_is_the_right_one(line: int):
    lines = exported()
    name, value = next(iter(json.loads(lines[line]).items()))
    before, after = f'{{"{name}": "other", {lines[line][1:]}', f'{lines[line][:-1]}, "{name}": {json.dumps(value)}}}'

    for doubled in (before, after):
        assert "names a member twice" in (check([*lines[:line], doubled, *lines[line + 1 :]]).fault or "")


def _said(text: str):
    try:
        lines = [json.loads(line) for line in text.splitlines()]
    except ValueError:
        return None
    for line in lines:
        if isinstance(line, dict) and "signature" in line:
            try:
                line["signature"] = base64.b64decode(line["signature"], validate=True)
            except ValueError:
                return None
    return lines


@pytest.mark.parametrize("line", ["", "[]", "7", "nul", '{"checkpoint": true}', '{"seq": 1e400}', "[" * 5000])
def test_what_is_no_entry_is_a_fault(line):
    assert check([line]).fault is not None


def test_nothing_proves_nothing():
    assert check([]).fault is not None

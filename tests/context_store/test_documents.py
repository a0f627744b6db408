"""Records with the members that a caller selects."""

import msgspec

from gateway.context_store.documents import projected, projection


def test_selected_members_are_in_the_order_of_the_fields():
    names = [f"field_{number}" for number in range(20)]
    record = msgspec.json.encode(dict.fromkeys(sorted(names), 1)).decode()

    selected = projected(record, projection([(name,) for name in reversed(names)]))

    assert list(msgspec.json.decode(selected)) == names[::-1]

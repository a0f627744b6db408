"""What a synchronization that has ended says of itself."""

import pytest

from gateway.context_store.sync.job import final_message


@pytest.mark.parametrize(
    ("records", "entities", "failed", "incomplete", "message"),
    [
        (1, 1, 0, 0, "1 of 1 entities synchronized, 1 record"),
        (120, 3, 1, 0, "2 of 3 entities synchronized, 120 records; 1 failed"),
        (120, 3, 1, 2, "2 of 3 entities synchronized, 120 records; 2 incomplete; 1 failed"),
        (0, 2, 0, 0, "2 of 2 entities synchronized, 0 records"),
    ],
)
def test_a_synchronization_ends_with_what_it_did(records, entities, failed, incomplete, message):
    assert final_message(records, entities, failed, incomplete) == message

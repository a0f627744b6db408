"""What a synchronization that has ended says of itself."""

import pytest

from gateway.context_store.sync.job import final_message


@pytest.mark.parametrize(
    ("records", "entities", "failed", "message"),
    [
        (1, 1, 0, "1 of 1 entities synchronized, 1 record"),
        (120, 3, 1, "2 of 3 entities synchronized, 120 records; 1 failed"),
        (0, 2, 0, "2 of 2 entities synchronized, 0 records"),
    ],
)
def test_a_synchronization_ends_with_what_it_did(records: int, entities: int, failed: int, message: str):
    assert final_message(records, entities, failed) == message

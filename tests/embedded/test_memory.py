"""How much memory the embedded PostgreSQL keeps records in."""

import pytest

from gateway.embedded.memory import available, shared_buffers, smallest

GIB = 1 << 30


@pytest.mark.parametrize(
    ("limits", "memory"),
    [
        ([], 8 * GIB),
        (["max", "max"], 8 * GIB),
        ([str(2 * GIB), "max"], 2 * GIB),
        (["max", str(GIB), str(4 * GIB)], GIB),
        (["9223372036854771712"], 8 * GIB),
        (["", "0", "-1", "²"], 8 * GIB),
    ],
)
def test_memory_is_the_machines_or_what_a_container_is_held_to(limits, memory):
    assert smallest(8 * GIB, limits) == memory


@pytest.mark.parametrize(
    ("memory", "setting"),
    [(GIB // 4, "128MB"), (GIB, "256MB"), (2 * GIB, "512MB"), (4 * GIB, "1024MB"), (512 * GIB, "1024MB")],
)
def test_a_quarter_of_the_memory_is_for_records_within_bounds(memory, setting):
    assert shared_buffers(memory) == setting


def test_this_machine_has_some():
    assert available() > 0

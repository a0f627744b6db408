"""One deadline for several phases: none of them begins its time anew."""

from gateway.foundation.aio.deadline import Deadline


def test_a_phase_gets_what_those_before_it_left_and_those_after_it_need():
    now = 100.0
    deadline = Deadline(30.0, lambda: now)

    first = deadline.left(reserve=3.0)
    now = 120.0
    second = deadline.left(reserve=3.0)
    now = 128.0
    third = deadline.left(reserve=3.0)
    last = deadline.left()
    now = 140.0

    assert (first, second, third, last, deadline.left()) == (27.0, 7.0, 0.0, 2.0, 0.0)

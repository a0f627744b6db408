"""The supervisor restarts children, forwards their output, and ends them in order."""

import asyncio
import os
import signal
import subprocess
import sys
from itertools import pairwise

import psutil
import pytest

from gateway.embedded import StartupError
from gateway.embedded.program import Program
from gateway.embedded.supervisor import Supervisor
from gateway.settings import SettingsError
from tests.harness.waiting import eventually, eventually_without_loop

PATIENT = "import time; print('up', flush=True); time.sleep(600)"
STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
)


def child(name: str, code: str = PATIENT, **more) -> Program:
    return Program(name, name, (sys.executable, "-c", code), dict(os.environ), **more)


@pytest.fixture
def lines() -> list[tuple[str, str]]:
    return []


@pytest.fixture
async def supervisor(lines):
    supervisor = Supervisor(lambda name, line: lines.append((name, line)))
    yield supervisor
    await supervisor.stop()


async def test_lines_of_stdout_and_stderr_are_forwarded(supervisor, lines):
    await supervisor.start(child("talker", "import os; os.write(1, b'out\\n'); os.write(2, b'err\\n'); input()"))

    await eventually(lambda: {("talker", "out"), ("talker", "err")} <= set(lines))


async def test_a_very_long_line_does_not_stop_the_forwarding(supervisor, lines):
    await supervisor.start(child("talker", f"print('x' * {3 << 20}); {PATIENT}"))

    await eventually(lambda: ("talker", "up") in lines)


async def test_a_requested_restart_does_not_count_as_an_exit(supervisor, lines):
    await supervisor.start(child("mortal"), child("other"))
    await eventually(lambda: len(lines) == 2)
    [first], [other] = supervisor.pids("mortal"), supervisor.pids("other")

    for count in range(3, 8):
        supervisor.restart("mortal")
        await eventually(lambda count=count: len(lines) == count)

    assert supervisor.pids("mortal") != [first]
    assert supervisor.pids("other") == [other]
    supervisor.ensure_no_crash_loop()


async def test_a_child_that_exits_is_restarted(supervisor, lines):
    await supervisor.start(child("mortal"))
    await eventually(lambda: len(lines) == 1)
    [first] = supervisor.pids("mortal")

    os.kill(first, signal.SIGKILL)
    await eventually(lambda: len(lines) == 2)

    assert supervisor.pids("mortal") != [first]


async def test_each_new_process_id_is_reported():
    seen = []
    supervisor = Supervisor(lambda *_: None, lambda: seen.append(supervisor.pids("mortal")))
    await supervisor.start(child("mortal", "pass"))

    await eventually(lambda: len([pids for pids in seen if pids]) == 2)

    await supervisor.stop()


async def test_the_delay_before_a_restart_grows(supervisor, lines):
    await supervisor.start(child("hasty", "import time; print(time.monotonic())"))

    await eventually(lambda: len(lines) == 4)

    began = [float(line) for _, line in lines]
    pauses = [later - earlier for earlier, later in pairwise(began)]
    assert pauses[0] > 0.1
    assert pauses[1] > 0.2
    assert pauses[2] > 0.4


async def test_a_crash_loop_is_an_error(supervisor, lines):
    await supervisor.start(child("broken", "raise SystemExit('no such setting')"))
    supervisor.ensure_no_crash_loop()

    await eventually(lambda: len(lines) == 4)

    with pytest.raises(StartupError, match=r"broken does not start(.|\n)*no such setting"):
        supervisor.ensure_no_crash_loop()


async def test_a_child_with_invalid_settings_is_an_error_at_once(supervisor, lines):
    code = "print('Error: GATEWAY_BIND: no port'); raise SystemExit(2)"
    await supervisor.start(child("invalid", code, unusable_status=2))

    with pytest.raises(SettingsError, match=r"^GATEWAY_BIND: no port$"):
        await eventually(supervisor.ensure_no_crash_loop)

    assert len(lines) == 1


async def test_the_start_of_a_child_that_exits_before_it_is_ready_fails_with_its_output(supervisor):
    broken = child("broken", "raise SystemExit('no such setting')", is_ready=lambda _pid: False)

    with pytest.raises(StartupError, match="no such setting"):
        await supervisor.start(broken)


async def test_a_failure_of_the_preparation_is_the_error(supervisor):
    def refuse():
        raise StartupError("the disk is full: make room")

    with pytest.raises(StartupError, match="make room"):
        await supervisor.start(child("refused", prepare=refuse, is_ready=lambda _pid: False))


async def test_groups_stop_in_reverse_order(supervisor, lines):
    code = "import signal, time; signal.signal(15, lambda *_: exit('gone')); print('up', flush=True); time.sleep(600)"
    for name in ("store", "server"):
        await supervisor.start(child(name, code))
        await eventually(lambda name=name: (name, "up") in lines)

    await supervisor.stop()

    assert lines[-2:] == [("server", "gone"), ("store", "gone")]


async def test_a_child_that_does_not_stop_in_time_is_killed(supervisor, lines):
    await supervisor.start(child("stubborn", STUBBORN, grace=0.1))
    await eventually(lambda: lines == [("stubborn", "up")])
    [pid] = supervisor.pids("stubborn")

    await supervisor.stop()

    assert not psutil.pid_exists(pid)


async def test_a_child_that_waits_for_its_restart_stops_at_once(supervisor, lines):
    await supervisor.start(child("broken", "print('tried')"))
    await eventually(lambda: len(lines) == 5)

    async with asyncio.timeout(1.0):
        await supervisor.stop()


#: a program that supervises children and prints their process ids
SUPERVISING = f"""
import asyncio, sys
from gateway.embedded.program import Program
from gateway.embedded.supervisor import Supervisor

async def work():
    code = {{"patient": {PATIENT!r}, "stubborn": {STUBBORN!r}}}
    programs = [Program(name, "child", (sys.executable, "-c", code[name]), {{}}) for name in sys.argv[1:]]
    await supervisor.start(*programs)

def report(name, line):
    global up
    up += 1
    if up == len(sys.argv) - 1:
        print(*supervisor.pids("child"), flush=True)

async def main():
    global supervisor
    supervisor = Supervisor(report)
    await supervisor.run(work())

up = 0
asyncio.run(main())
"""


@pytest.fixture
def supervise():
    """Start a supervising process; returns the process and the process ids of its children."""
    started = []

    def start(*names):
        process = subprocess.Popen([sys.executable, "-c", SUPERVISING, *names], stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process, [int(pid) for pid in process.stdout.readline().split()]

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_everything_cleanly(supervise, sign):
    parent, children = supervise("patient", "patient")

    parent.send_signal(sign)

    assert parent.wait(timeout=10) == 0
    assert len(children) == 2
    assert not any(psutil.pid_exists(pid) for pid in children)


def test_a_second_signal_kills_children_that_do_not_stop(supervise):
    parent, children = supervise("patient", "stubborn")
    patient = psutil.Process(children[0])
    parent.send_signal(signal.SIGINT)
    patient.wait(timeout=5)  # so that the first signal has been handled

    parent.send_signal(signal.SIGINT)

    assert parent.wait(timeout=5) == 0
    assert not any(psutil.pid_exists(pid) for pid in children)


def test_children_are_not_in_the_process_group_of_the_terminal(supervise):
    parent, children = supervise("patient")

    assert os.getpgid(children[0]) == children[0] != os.getpgid(parent.pid)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties a child to its parent")
def test_children_die_with_a_parent_that_is_killed(supervise, is_alive):
    parent, children = supervise("patient", "stubborn")

    parent.kill()

    eventually_without_loop(lambda: not any(is_alive(pid) for pid in children))

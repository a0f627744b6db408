"""`gateway up` as a whole: it starts, announces itself, replaces killed children, stops, and starts again."""

import contextlib
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from gateway.client.settings import client_settings
from tests.harness.folders import short_path
from tests.harness.waiting import eventually_without_loop

RUN_UP = str(Path(__file__).with_name("run_up.py"))


class Run:
    """One `up` process."""

    def __init__(self, place: Path, *options: str, stdout: int = subprocess.PIPE, **environment: str) -> None:
        self.ready_file = place / "ready.json"
        self.data = place / "data"
        self.process = subprocess.Popen(
            [sys.executable, RUN_UP, str(self.data), str(self.ready_file), *options],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
        )

    def is_ready(self) -> bool:
        assert self.process.poll() is None, self.process.communicate()
        return self.ready_file.exists()

    def facts(self) -> dict:
        return json.loads(self.ready_file.read_text())

    def children(self) -> list[int]:
        return [one.pid for one in psutil.Process(self.process.pid).children(recursive=True)]

    def stop(self) -> tuple[str, str]:
        self.process.terminate()
        return self.process.communicate(timeout=30)


class Terminal:
    """A pseudo-terminal, and the text that is written to it."""

    def __init__(self) -> None:
        self._master, self.slave = os.openpty()
        os.set_blocking(self._master, False)

    def read(self) -> str:
        """The text that was written since the last call."""
        try:
            return os.read(self._master, 1 << 16).decode().replace("\r\n", "\n")
        except BlockingIOError:
            return ""

    def close(self) -> None:
        os.close(self._master)
        os.close(self.slave)


@pytest.fixture
def terminal():
    opened = Terminal()
    yield opened
    opened.close()


@contextmanager
def starting(place: Path) -> Iterator[Callable[..., Run]]:
    """A function that starts `up` and waits until it is ready; all runs are stopped when the block ends."""
    runs = []

    def start(*options: str, stdout: int = subprocess.PIPE, **environment: str) -> Run:
        run = Run(place, *options, stdout=stdout, **environment)
        runs.append(run)
        eventually_without_loop(run.is_ready)
        return run

    try:
        yield start
    finally:
        for run in runs:
            if run.process.returncode is None:
                run.stop()


@pytest.fixture
def start(place):
    with starting(place) as start:
        yield start


@pytest.fixture(scope="module")
def running_up():
    """A run with a sandbox, for tests that do not stop it."""
    with short_path() as place, starting(place) as start:
        (place / "notes").mkdir()
        yield start("sandbox=true", 'kinds=["support-desk"]', STAND_IN_NOTES=str(place / "notes"))


@dataclass(frozen=True)
class Ended:
    """A run with a sandbox that was ready and was then stopped: its output, and its state before."""

    run: Run
    shown: str
    errors: str
    base_url: str
    #: the URL that callers on this machine found
    found: str
    children: list[int]


@pytest.fixture(scope="module")
def ended_up():
    with short_path() as place, starting(place) as start:
        run = start("sandbox=true")
        base_url, children = run.facts()["base_url"], run.children()
        found = client_settings(environ={"GATEWAY_DATA_DIR": str(run.data)})
        shown, errors = run.stop()
        yield Ended(run, shown, errors, base_url, str(found.base_url), children)


def test_it_starts_and_writes_the_ready_file(running_up):
    facts = running_up.facts()

    assert urllib.request.urlopen(f"{facts['base_url']}/readyz").status == 200
    assert (facts["client_id"], facts["client_secret"], facts["organization_id"]) == ("first", "sesame", "org")
    assert [len(facts["pids"][role]) for role in ("gateway", "workers")] == [1, 1]
    assert {facts["pids"]["redis"], facts["pids"]["postgres"]} <= set(running_up.children())


def test_files_with_secrets_are_private(running_up):
    data = running_up.data

    private = [running_up.ready_file, data / "encryption.keys", data / "first-client.json"]
    assert [stat.S_IMODE(path.stat().st_mode) for path in private] == [0o600] * 3
    assert stat.S_IMODE(data.stat().st_mode) & stat.S_IRWXO == 0


def test_output_that_is_not_a_terminal_names_the_file_with_the_secret(ended_up):
    assert "sesame" not in ended_up.shown + ended_up.errors
    assert f"its secret is in {ended_up.run.data / 'first-client.json'}" in ended_up.shown


def test_the_secret_is_printed_once_on_a_terminal(start, terminal):
    start(stdout=terminal.slave).stop()
    shown_first = terminal.read()
    start(stdout=terminal.slave).stop()
    shown_later = terminal.read()

    assert "sesame" in shown_first
    assert "sesame" not in shown_later
    assert "first-client.json" in shown_later


def test_a_shell_that_sources_the_environment_has_the_settings_of_callers(running_up):
    file = running_up.data / "env"
    script = f"source {file}; env; command -v python"

    shown = subprocess.run(["bash", "-euc", script], capture_output=True, text=True, check=True).stdout.splitlines()

    settings = {
        f"GATEWAY_URL={running_up.facts()['base_url']}",
        "GATEWAY_CLIENT_ID=first",
        "GATEWAY_CLIENT_SECRET=sesame",
    }
    assert settings <= set(shown)
    assert shown[-1].startswith(str(Path(sys.executable).parent))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_output_names_the_console_and_the_documents(ended_up):
    assert f"{ended_up.base_url}/console" in ended_up.shown
    assert f"{ended_up.base_url}/docs" in ended_up.shown


def test_the_output_names_the_file_to_source(ended_up):
    assert f"source {ended_up.run.data / 'env'}" in ended_up.shown
    assert not (ended_up.run.data / "env").exists()


def test_its_address_is_in_the_data_directory_while_it_runs(ended_up):
    assert ended_up.found == ended_up.base_url
    assert not (ended_up.run.data / "address").exists()


def test_the_environment_names_the_sandbox(running_up):
    text = (running_up.data / "env").read_text("utf-8")

    assert re.search(r"^export SANDBOX_URL=http://127\.0\.0\.1:\d+$", text, flags=re.MULTILINE)


def test_the_output_of_children_is_forwarded(ended_up):
    assert "serve is running" in ended_up.errors


def test_several_front_ends_and_workers_share_the_stores(start):
    facts = start("front_ends=2", "workers=3").facts()

    assert [len(set(facts["pids"][role])) for role in ("gateway", "workers")] == [2, 3]


@pytest.mark.parametrize("role", ["gateway", "workers", "redis", "postgres"])
def test_a_killed_child_is_replaced_and_the_ready_file_has_the_new_process_id(running_up, role):
    before = running_up.facts()["pids"][role]

    os.kill(before[0] if isinstance(before, list) else before, signal.SIGKILL)

    eventually_without_loop(lambda: running_up.facts()["pids"][role] not in (before, [], None))
    eventually_without_loop(lambda: answers(running_up))


def answers(run: Run) -> bool:
    try:
        return urllib.request.urlopen(f"{run.facts()['base_url']}/readyz").status == 200
    except OSError:
        return False


def test_a_signal_ends_everything_and_removes_the_ready_file(ended_up):
    run = ended_up.run

    assert run.process.returncode == 0
    assert len(ended_up.children) >= 5
    assert not any(psutil.pid_exists(pid) for pid in ended_up.children)
    assert not run.ready_file.exists()
    assert not (run.data / "postgres" / "cluster" / "postmaster.pid").exists()


def test_it_starts_on_the_same_data_after_everything_was_killed(start):
    run = start("sandbox=true")
    before, address = run.facts(), run.facts()["base_url"].removeprefix("http://")
    for pid in [run.process.pid, *run.children()]:
        # some children die with their parent before this loop reaches them
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    run.process.communicate()
    run.ready_file.unlink()

    after = start(f'bind="{address}"').facts()

    assert (after["base_url"], after["client_secret"]) == (before["base_url"], "sesame")
    assert not set(after["pids"]["gateway"]) & set(before["pids"]["gateway"])


def test_it_starts_on_the_same_data_after_it_alone_was_killed(start):
    run = start()
    run.process.kill()
    run.process.communicate()
    run.ready_file.unlink()

    assert start().facts()["client_secret"] == "sesame"


def test_a_second_gateway_in_the_same_directory_is_refused(running_up):
    second = Run(running_up.data.parent)
    _, errors = second.process.communicate(timeout=30)

    assert second.process.returncode == 1
    assert f"is in use by process {running_up.process.pid}" in errors
    assert answers(running_up)


def test_a_port_in_use_is_an_error_before_anything_is_started(place):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        run = Run(place, f'bind="127.0.0.1:{taken.getsockname()[1]}"')
        _, errors = run.process.communicate(timeout=30)

    assert run.process.returncode == 1
    assert "is in use by another program" in errors
    assert not (place / "data" / "postgres").exists()


def test_another_port_is_told_if_the_usual_one_is_in_use(start):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        run = start(f'bind="127.0.0.1:{port}"', "takes_another_port=true")

        assert not run.facts()["base_url"].endswith(f":{port}")
        assert answers(run)


def test_a_front_end_that_cannot_start_ends_it_with_the_reason(place):
    broken = json.dumps([sys.executable, str(Path(__file__).with_name("stand_in.py")), "broken"])

    run = Run(place, f"command={broken}")
    _, errors = run.process.communicate(timeout=60)

    assert run.process.returncode == 1
    assert "the disk is full" in errors.splitlines()[-1]


def test_a_front_end_with_an_invalid_setting_is_not_restarted(place):
    invalid = json.dumps([sys.executable, str(Path(__file__).with_name("stand_in.py")), "invalid"])

    run = Run(place, f"command={invalid}", "workers=0")
    _, errors = run.process.communicate(timeout=60)

    assert run.process.returncode == 1
    assert errors.splitlines()[-1] == "GATEWAY_X: is not a number"
    assert errors.count("gateway-1 ended with status 2") == 1


def test_a_lost_key_file_is_an_error(start, place):
    start().stop()
    (place / "data" / "encryption.keys").unlink()

    run = Run(place)
    _, errors = run.process.communicate(timeout=30)

    assert run.process.returncode == 1
    assert "Restore it from your backup" in errors


def test_requests_to_the_kinds_go_to_the_sandbox(running_up):
    serving = next((running_up.data.parent / "notes").glob("serve-*"))

    upstream = dict(line.split("=", 1) for line in serving.read_text().splitlines())["GATEWAY_UPSTREAM_SUPPORT_DESK"]

    assert urllib.request.urlopen(upstream).status == 200
    assert len(running_up.facts()["pids"]["sandbox"]) == 1

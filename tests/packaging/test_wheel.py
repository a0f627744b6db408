"""The built wheel in an empty environment: specs and migrations come along, and `gateway up` runs from it."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: seconds for the gateway to become ready
PATIENCE = 60


@pytest.fixture(scope="module")
def installed(short_directory):
    """The bin folder of an environment that has the wheel and what it asks for, and nothing else.

    Root's local servers run as another user, who must be able to enter it.
    """
    short_directory.chmod(0o755)
    place = short_directory / "installed"
    place.mkdir()
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--outdir", str(place), str(ROOT)], check=True, capture_output=True
    )
    [wheel] = place.glob("*.whl")
    venv.create(place / "venv", with_pip=True)
    bin_folder = place / "venv" / "bin"
    subprocess.run(
        [
            *(str(bin_folder / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
            *("--constraint", str(ROOT / "constraints.txt"), f"{wheel}[all]"),
        ],
        check=True,
        capture_output=True,
    )
    return bin_folder


def test_the_shipped_kinds_are_there(installed, tmp_path):
    output = subprocess.run(
        [str(installed / "gateway"), "types", "-o", "json"], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout

    assert "support-desk" in output


def test_the_wheel_runs_the_whole_gateway(installed, tmp_path, short_directory):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ready_file = tmp_path / "ready.json"
    process = subprocess.Popen(
        [
            *(str(installed / "gateway"), "up", "--bind", f"127.0.0.1:{port}"),
            *("--data-dir", str(short_directory / "wheel"), "--ready-file", str(ready_file)),
        ],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if not name.startswith(("GATEWAY_", "PYTHON"))},
        stdout=subprocess.DEVNULL,
    )

    deadline = time.monotonic() + PATIENCE
    while not ready_file.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    is_ready = ready_file.exists()
    base_url = json.loads(ready_file.read_text())["base_url"] if is_ready else None
    process.send_signal(signal.SIGINT)

    assert is_ready
    assert base_url == f"http://127.0.0.1:{port}"
    assert process.wait(PATIENCE) == 0

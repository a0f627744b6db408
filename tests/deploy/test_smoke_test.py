"""The smoke test of the image, with a program in the place of Docker that records its arguments and its environment."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

DEPLOY = Path(__file__).parents[2] / "deploy"
DOCKER = """#!/bin/sh
echo "$*" >> "$RECORD"
env | grep '^GATEWAY_' > "$RECORD.env"
case "$*" in *" up "*) test "$UP" = works ;; esac
"""


@pytest.mark.parametrize(("up", "code"), [("works", 0), ("fails", 1)])
def test_it_gives_compose_every_variable_and_removes_all_that_it_made(tmp_path: Path, up: str, code: int):
    shutil.copytree(DEPLOY, tmp_path / "deploy", ignore=shutil.ignore_patterns("gateway.env", ".env"))
    (docker := tmp_path / "docker").write_text(DOCKER)
    docker.chmod(0o755)
    record = tmp_path / "record"
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "RECORD": str(record), "UP": up}

    ended = subprocess.run([tmp_path / "deploy" / "smoke-test"], env=environment, capture_output=True, text=True)

    assert ended.returncode == code, ended.stderr
    assert ("the image works" in ended.stdout) is (code == 0)
    calls = record.read_text().splitlines()
    assert (" up " in calls[0], " down --volumes" in calls[-1]) == (True, True)
    given = {line.partition("=")[0] for line in Path(f"{record}.env").read_text().splitlines()}
    assert set(re.findall(r"\$\{(\w+):\?", (DEPLOY / "compose.yaml").read_text("utf-8"))) <= given
    assert not (tmp_path / "deploy" / "gateway.env").exists()

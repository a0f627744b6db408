"""The Makefile on a machine that lacks what it needs."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_python_that_is_too_old_is_named_before_anything_is_installed(tmp_path: Path):
    old = tmp_path / "python3.9"
    old.write_text('#!/bin/sh\nexec python3 -c "import sys; sys.version_info = (3, 9); $2"\n')
    old.chmod(0o755)
    environment = tmp_path / "venv"

    ended = subprocess.run(
        ["make", "run", f"PYTHON={old}", f"VENV={environment}"], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert ended.returncode == 2
    assert f"{old} is missing, or older than Python 3.11" in ended.stdout
    assert "make run PYTHON=python3.12" in ended.stdout
    assert not environment.exists()

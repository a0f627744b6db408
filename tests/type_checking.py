"""Programs of callers, read by mypy as they would read them: strictly, with the package as it is installed."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def mypy(program: Path) -> "subprocess.CompletedProcess[str]":
    """What mypy --strict says of a program, of each fault with its code."""
    return subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--config-file", os.devnull, "--no-error-summary"),
            *("--cache-dir", str(ROOT / ".mypy_cache" / "callers"), "--follow-imports", "silent", str(program)),
        ],
        capture_output=True,
        text=True,
        cwd=program.parent,
        env={**os.environ, "MYPYPATH": str(ROOT)},
    )

"""All benchmarks, each in its own process: `make bench`.

    python -m tests.benchmarks [--quick] [--only execute,jobs]

Writes REPORT.md and plots/ beside this file, with --only those sections of it, and ends with 1 when a target is missed
or a benchmark fails.
"""

import argparse
import importlib
import os
import pickle
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import psutil
import uvloop

from tests.benchmarks.report import Report

HERE = Path(__file__).parent
REPORT = HERE / "REPORT.md"
SUITES = (
    "execute", "downloads", "jobs", "search", "find", "growth", "thousands", "bulk", "batches", "freshness", "overload",
    "agents", "agent_tasks", "events", "pages", "reads", "exports", "schedules", "policies", "copies", "start",
    "fairness", "people", "console",
)  # fmt: skip


def main() -> int:
    """Run the benchmarks; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="short rounds and small sizes; the report is not written")
    parser.add_argument("--only", default=",".join(SUITES), help="suites, separated by commas")
    parser.add_argument("--into", help=argparse.SUPPRESS)
    options = parser.parse_args()
    wanted = options.only.lower().split(",")
    if unknown := set(wanted) - set(SUITES):
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(SUITES)}")
    if options.into:
        return _measure(wanted[0], options.quick, Path(options.into))
    reports, failed = _measured(wanted, options.quick)
    sections = {report.title: report.markdown() for report in reports}
    if not options.quick:
        sections = _kept() | sections
    text = _document(sections, failed)
    print(text)
    if not options.quick:
        _write(text, reports)
    missed = [figure for report in reports for figure in report.missed]
    print(f"{len(missed)} targets missed, {len(failed)} suites failed")
    return 1 if missed or failed else 0


def _measure(suite: str, quick: bool, into: Path) -> int:
    """One suite in this process; its report goes to a file."""
    module = importlib.import_module(f"tests.benchmarks.bench_{suite}")
    into.write_bytes(pickle.dumps(uvloop.run(module.run(quick))))
    return 0


def _measured(suites: list[str], quick: bool) -> tuple[list[Report], list[str]]:
    """The reports, and the suites that failed; the others continue."""
    reports, failed = [], []
    for suite in suites:
        print(f"measuring {suite} …", file=sys.stderr, flush=True)
        with tempfile.NamedTemporaryFile() as file:
            arguments = ["--only", suite, "--into", file.name, *(["--quick"] if quick else [])]
            done = subprocess.run(
                [sys.executable, "-m", "tests.benchmarks", *arguments], stdout=sys.stderr, check=False
            )
            if done.returncode:
                failed.append(suite)
            else:
                reports.append(pickle.loads(Path(file.name).read_bytes()))
    return reports, failed


def _kept() -> dict[str, str]:
    """The sections of the existing report by title, which stay if they are not measured again."""
    text = REPORT.read_text("utf-8") if REPORT.is_file() else ""
    return {part.partition("\n")[0]: f"## {part}" for part in text.split("\n## ")[1:]}


def _document(sections: Mapping[str, str], failed: list[str]) -> str:
    missed = [line.split(" | ")[0].removeprefix("| ") for text in sections.values() for line in text.splitlines()
              if line.endswith("| missed |")]  # fmt: skip
    lines = [
        "# What was measured",
        "",
        f"On {time.strftime('%Y-%m-%d')}, {_machine()}. Made by `make bench`; each figure stands beside a baseline",
        "that was measured in the same run. Compare ratios: absolute figures differ from machine to machine.",
        "",
        "Targets missed:" if missed else "No target is missed.",
        "",
        *(f"- {name}" for name in missed),
        *(["", f"Suites that failed: {', '.join(failed)}."] if failed else []),
        "",
    ]
    return "\n".join([*lines, *(text.rstrip("\n") + "\n" for text in sections.values())])


def _machine() -> str:
    memory = psutil.virtual_memory().total / (1 << 30)
    return f"{os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()}, Python {platform.python_version()}"


def _write(text: str, reports: list[Report]) -> None:
    REPORT.write_text(text, "utf-8")
    folder = HERE / "plots"
    folder.mkdir(exist_ok=True)
    for report in reports:
        for plot in report.plots:
            (folder / f"{plot.name}.svg").write_text(plot.svg(), "utf-8")


if __name__ == "__main__":
    sys.exit(main())

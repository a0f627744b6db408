"""Static files of pages: small, and vendored files unchanged."""

import re
from hashlib import sha256
from importlib.resources import files

from gateway.web.pages.static_files import static_files

VENDOR = files("gateway.web.pages") / "static" / "vendor"


def test_all_scripts_together_are_small():
    scripts = {name: len(file.compressed) for name, file in static_files().items() if name.endswith(".js")}

    assert sum(scripts.values()) <= 60 << 10


def test_vendored_scripts_are_unchanged():
    rows = re.findall(r"\| `([^`]+)` \|.*\| `(\w{64})` \|", (VENDOR / "README.md").read_text("utf-8"))

    assert {name for name, _ in rows} == {entry.name for entry in VENDOR.iterdir() if ".min." in entry.name}
    assert all(sha256((VENDOR / name).read_bytes()).hexdigest() == digest for name, digest in rows)


def test_the_style_sheets_of_the_console_are_small():
    sheets = ("vendor/pico-2.1.1.min.css", "vendor/uPlot-1.6.32.min.css", "pages.css")

    assert sum(len(static_files()[name].compressed) for name in sheets) <= 60 << 10

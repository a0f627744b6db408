"""Folders of specs that change while the gateway runs."""

import asyncio
from pathlib import Path

from gateway.embedded.spec_watch import changes, signature
from gateway.kinds.starter import starter_files

#: seconds between two reads in these tests
INTERVAL = 0.02


def written(root: Path, kind: str) -> Path:
    folder = root / kind
    folder.mkdir()
    for name, text in starter_files(kind).items():
        (folder / name).write_text(text)
    return folder


async def test_a_new_kind_an_error_and_its_correction_are_reported(tmp_path):
    written(tmp_path, "parcels")
    following = changes([tmp_path], interval=INTERVAL)

    letters = written(tmp_path, "letters")
    added = await asyncio.wait_for(anext(following), 20)
    items = letters / "items.yaml"
    items.write_text(items.read_text().replace("effect: read", "effect: reads"))
    broken = await asyncio.wait_for(anext(following), 20)
    items.write_text(starter_files("letters")["items.yaml"])
    corrected = await asyncio.wait_for(anext(following), 20)

    assert {"parcels", "letters", "support-desk"} <= set(added.kinds)
    assert list(broken.refused) == ["letters"]
    assert "parcels" in broken.kinds
    assert not corrected.refused


def test_only_changes_of_spec_files_change_the_signature(tmp_path):
    folder = written(tmp_path, "parcels")
    before = signature([tmp_path])

    (folder / "notes.txt").write_text("x")
    unchanged = signature([tmp_path])
    (folder / "items.yaml").unlink()

    assert unchanged == before
    assert signature([tmp_path]) != before

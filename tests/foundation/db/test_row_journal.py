"""Rows in files that outlive their process."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import pytest

from gateway.foundation.db.row_journal import RowJournal, left_rows

ONE, TWO, THREE = (UUID(int=number) for number in range(1, 4))


def left(folder: Path) -> list[bytes]:
    """What is left, after which it is gone."""
    with left_rows(folder) as found:
        if found is None:
            return []
        found.delete()
        return sorted(bytes(row) for row in found.rows)


def killed(journal: RowJournal, folder: Path, *, after: int = 0) -> None:
    """What a kill does: the system closes the file, and the last `after` bytes were not written."""
    journal.close()
    [path] = folder.glob("*.journal")
    os.truncate(path, path.stat().st_size - after)


@contextmanager
def no_file_larger_than(size: int) -> Iterator[None]:
    """What a full disk does: it takes the beginning of what is written, and then nothing."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limit[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)


def test_what_had_begun_and_what_had_ended_is_left_and_what_another_row_tells_is_not(tmp_path: Path):
    journal = RowJournal(tmp_path)
    journal.begin(ONE, b'"one begun"')
    journal.begin(TWO, b'"two begun"')
    journal.begin(THREE, b'"three begun"')
    journal.end(TWO, b'"two ended"')
    journal.drop(THREE)
    killed(journal, tmp_path)

    assert left(tmp_path) == [b'"one begun"', b'"two ended"']
    assert left(tmp_path) == []


def test_a_row_that_replaces_another_is_left_alone(tmp_path: Path):
    journal = RowJournal(tmp_path)
    journal.begin(ONE, b'"one"')
    former = journal.cut()
    journal.begin(TWO, b'"instead"', ONE)
    journal.close()
    for segment in former:
        segment.file.close()

    assert left(tmp_path) == [b'"instead"']


def test_a_process_that_lives_keeps_its_rows(tmp_path: Path):
    journal = RowJournal(tmp_path)
    journal.begin(ONE, b'"one"')

    assert left(tmp_path) == []
    killed(journal, tmp_path)
    assert left(tmp_path) == [b'"one"']


def test_what_is_under_way_stays_when_the_rows_before_are_stored(tmp_path: Path):
    journal = RowJournal(tmp_path)
    journal.begin(ONE, b'"one"')
    journal.end(TWO, b'"two"')
    for segment in journal.cut():
        segment.delete()
    killed(journal, tmp_path)

    assert left(tmp_path) == [b'"one"']


def test_a_line_that_was_half_written_is_none(tmp_path: Path):
    journal = RowJournal(tmp_path)
    journal.begin(ONE, b'"one"')
    journal.begin(TWO, b'"two"')
    killed(journal, tmp_path, after=1)

    assert left(tmp_path) == [b'"one"']


def test_one_process_takes_rows_up_at_a_time(tmp_path: Path):
    journal = RowJournal(tmp_path)
    journal.begin(ONE, b'"one"')
    killed(journal, tmp_path)

    with left_rows(tmp_path) as first, left_rows(tmp_path) as second:
        assert (first is not None, second) == (True, None)


def test_calls_go_on_when_no_file_can_be_written(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    (tmp_path / "file").touch()
    journal = RowJournal(tmp_path / "file")
    journal.begin(ONE, b'"one"')
    journal.end(ONE, b'"one"')

    assert journal.cut() == []
    assert [record.message for record in caplog.records] == [
        f"rows cannot be written to {tmp_path / 'file'}: they are lost if this process is killed"
    ]


def test_a_full_disk_costs_the_rows_that_it_does_not_take_and_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    journal = RowJournal(tmp_path)
    journal.begin(ONE, b'"one"')
    with no_file_larger_than(60):
        journal.begin(TWO, b'"two"')
    journal.begin(THREE, b'"three"')
    killed(journal, tmp_path)

    assert left(tmp_path) == [b'"one"']
    assert len(caplog.records) == 1


@pytest.mark.parametrize("damage", [b'{"a": 1', b"\0\0", b'"\xff"', b""])
def test_a_damaged_row_costs_no_other(tmp_path: Path, damage: bytes):
    journal = RowJournal(tmp_path)
    journal.begin(ONE, b'"one"')
    journal.end(TWO, damage)
    killed(journal, tmp_path)

    assert left(tmp_path) == [b'"one"']

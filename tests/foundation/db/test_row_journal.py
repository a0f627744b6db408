"""Rows in files that outlive their process."""

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


def killed(journal: RowJournal, folder: Path) -> None:
    """What a kill does: the system closes the file."""
    journal.close()
    assert len(list(folder.glob("*.journal"))) == 1


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
        segment.close()

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


@pytest.mark.parametrize("written", [b"\0" + b"x" * 40 + b"\n", b"\0" * 20 + b"x\n", b"+half"])
def test_lines_that_were_half_written_are_none(tmp_path: Path, written: bytes):
    journal = RowJournal(tmp_path)
    journal.begin(ONE, b'"one"')
    killed(journal, tmp_path)
    [path] = tmp_path.glob("*.journal")
    complete = path.read_bytes().rstrip(b"\0")
    path.write_bytes(complete + written + path.read_bytes()[len(complete) + len(written) :])

    assert left(tmp_path) == [b'"one"']


def test_many_and_large_rows_are_in_several_files(tmp_path: Path):
    journal = RowJournal(tmp_path)
    rows = {UUID(int=number): b'"%d %s"' % (number, b"x" * 100_000) for number in range(40)}
    rows[UUID(int=40)] = b'"%s"' % (b"x" * 3_000_000)
    for id_, row in rows.items():
        journal.begin(id_, row)
    assert len(list(tmp_path.glob("*.journal"))) > 4
    former = journal.cut()
    journal.end(ONE, b'"ended"')
    for segment in former:
        segment.delete()
    journal.close()

    assert left(tmp_path) == sorted({**rows, ONE: b'"ended"'}.values())


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

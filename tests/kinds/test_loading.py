"""Folders of kinds that are broken in every way: a broken kind is refused with a reason, and the others are served."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.errors import ConnectorNotReady
from gateway.kinds.loading import kind_name_of, load_catalog, serving_catalog
from gateway.kinds.sources import LintError, SpecError
from tests.harness.hostile_kinds import change_file, write_kind

#: each name stands for nine values that each stand for nine values, and so on: 9⁸ values
LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefg", "bcdefgh", strict=True)
)
INDENTED = "".join(f"{' ' * depth}a:\n" for depth in range(200))


def written(text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / "items.yaml").write_text(text)


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        pytest.param(written("[" * 200_000), "more than 100 lists or mappings in one another", id="brackets"),
        pytest.param(written(INDENTED), "more than 100 lists or mappings in one another", id="indentation"),
        pytest.param(written(f"{LAUGHS}description: *h\n"), "aliases make more than 1,000,000 values", id="aliases"),
        pytest.param(written("description: 2026-13-01"), "not YAML: month must be in 1..12", id="month 13"),
        pytest.param(written(f"description: {'9' * 5000}"), "not YAML: Exceeds the limit", id="number"),
        pytest.param(written("description: !!python/name:os.system"), "not YAML: could not determine", id="tag"),
        pytest.param(written("- a list"), "a spec file is a mapping", id="list"),
        pytest.param(lambda folder: os.mkfifo(folder / "things.yaml"), "it is not a regular file", id="pipe"),
        pytest.param(lambda folder: (folder / "a.yaml").symlink_to("a.yaml"), "symbolic links", id="link to itself"),
        pytest.param(lambda folder: (folder / "a.yaml").mkdir(), "Is a directory", id="directory"),
        pytest.param(
            lambda folder: os.truncate(folder / "items.yaml", 40 << 20), "it has more than 32 MiB", id="large file"
        ),
    ],
)
def test_a_broken_file_costs_its_kind_only(tmp_path, break_it, message):
    write_kind(tmp_path, "sound")
    break_it(write_kind(tmp_path, "fleet"))

    catalog = load_catalog([tmp_path])

    assert catalog.refused.keys() == {"fleet"}
    assert message in str(catalog.refused["fleet"])
    assert {"sound", "support-desk"} <= catalog.kinds.keys()


def test_a_folder_that_is_missing_costs_its_kinds_only(tmp_path):
    write_kind(tmp_path / "one", "fleet")

    catalog = serving_catalog([tmp_path / "two", tmp_path / "one"])

    assert [str(each) for each in catalog.missing] == [
        f"{tmp_path}/two: the folder does not exist; correct GATEWAY_SPECS"
    ]
    assert {"fleet", "support-desk"} <= catalog.kinds.keys()
    assert "cannot be read" in (catalog.unserved_reason("parcels") or "")
    assert catalog.unserved_reason("fleet") is None


def test_a_record_is_never_served_by_another_kind_whose_application_has_its_kinds_name(tmp_path):
    write_kind(tmp_path, "vehicles", application="fleet")

    catalog = load_catalog([tmp_path])

    assert catalog.kind("fleet").name == "vehicles"
    with pytest.raises(ConnectorNotReady, match="the kind fleet is not served: no folder of GATEWAY_SPECS has it"):
        catalog.served("fleet")


def test_the_id_of_another_kind_is_refused(tmp_path):
    id_of_another = load_catalog().kind("support-desk").spec.definition_id
    write_kind(tmp_path, "fleet", definition_id=id_of_another)

    catalog = load_catalog([tmp_path])

    assert "definition_id: is that of support-desk" in str(catalog.refused["fleet"])
    assert "support-desk" in catalog.kinds


@pytest.mark.parametrize("name", [None, 7, ["fleet"], "Two words", "x" * 100_000 + "!"])
def test_a_kind_without_a_valid_name_has_that_of_its_folder(tmp_path, name):
    folder = write_kind(tmp_path, "fleet")
    change_file(folder / "connector.yaml", {"kind": name})

    assert kind_name_of(folder) == "fleet"


def test_the_summary_of_thousands_of_errors_is_one_short_line():
    error = SpecError([LintError(Path("things.yaml"), line, "x" * 500) for line in range(1, 5_001)])

    assert error.summary.startswith("5000 errors: things.yaml:1: xxx")
    assert len(error.summary) < 1_100

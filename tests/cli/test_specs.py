"""`gateway specs`: what is wrong with file and line, what a spec came to, and the editors' schema."""

import json
from pathlib import Path

from click.testing import CliRunner

from gateway.cli.specs import specs
from gateway.kinds.loading import shipped_specs


def test_the_shipped_specs_have_nothing_to_complain_about():
    done = CliRunner().invoke(specs, ["lint"])

    assert (done.exit_code, done.stdout) == (0, "")
    assert "0 errors" in done.stderr


def test_a_fault_is_told_with_its_file_and_line(tmp_path: Path):
    (tmp_path / "connector.yaml").write_text("kind: odd\ntitel: Odd\n")

    done = CliRunner().invoke(specs, ["lint", str(tmp_path)])

    assert done.exit_code == 1
    assert f"{tmp_path}/connector.yaml:2: titel: is not a member of this; did you mean title?" in done.stdout


def test_a_folder_of_several_kinds_is_linted_whole():
    done = CliRunner().invoke(specs, ["lint", str(shipped_specs())])

    assert done.exit_code == 0
    assert done.stderr.startswith("7 kinds")


def test_an_operation_shows_where_its_params_go():
    done = CliRunner().invoke(specs, ["show", "Support-Desk", "tickets", "list"])

    shown = json.loads(done.stdout)
    assert shown["request"].startswith("GET ")
    assert shown["placed"]["page"] == "query: page"
    assert shown["effect"] == "read"


def test_a_kind_that_is_not_loaded_yet_is_shown_from_its_folder():
    done = CliRunner().invoke(specs, ["show", str(shipped_specs() / "team-chat")])

    assert json.loads(done.stdout)["kind"] == "team-chat"


def test_the_schema_is_the_one_that_the_specs_name():
    done = CliRunner().invoke(specs, ["schema"])

    assert done.stdout == (shipped_specs() / "spec.schema.json").read_text("utf-8")

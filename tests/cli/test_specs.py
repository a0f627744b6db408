"""`gateway specs`: lint, show, try and new, and the editors' schema."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from gateway.cli.specs import specs
from gateway.kinds.loading import shipped_specs


def test_the_shipped_specs_have_no_errors():
    done = CliRunner().invoke(specs, ["lint"])

    assert (done.exit_code, done.stdout) == (0, "")
    assert "errors: 0" in done.stderr


def test_an_error_is_printed_with_its_file_and_line(tmp_path: Path):
    (tmp_path / "connector.yaml").write_text("kind: odd\ntitel: Odd\n")

    done = CliRunner().invoke(specs, ["lint", str(tmp_path)])

    assert done.exit_code == 1
    assert f"{tmp_path}/connector.yaml:2: titel: is not a known member; did you mean title?" in done.stdout


def test_a_folder_of_several_kinds_is_linted_whole():
    done = CliRunner().invoke(specs, ["lint", str(shipped_specs())])

    assert done.exit_code == 0
    kinds = list(shipped_specs().glob("*/connector.yaml"))
    assert done.stderr == f"kinds: {len(kinds)}, errors: 0\n"


def test_an_operation_shows_where_its_params_go():
    done = CliRunner().invoke(specs, ["show", "Support-Desk", "tickets", "list"])

    shown = json.loads(done.stdout)
    assert shown["request"].startswith("GET ")
    assert shown["placed"]["page"] == "query: page"
    assert shown["effect"] == "read"


def test_a_kind_that_is_not_loaded_yet_is_shown_from_its_folder():
    done = CliRunner().invoke(specs, ["show", str(shipped_specs() / "team-chat")])

    assert json.loads(done.stdout)["kind"] == "team-chat"


@pytest.mark.parametrize(("command", "rest"), [("show", []), ("try", ["items", "list"]), ("diff", ["zendesk"])])
def test_a_folder_without_a_kind_is_not_taken_for_a_name(tmp_path: Path, command: str, rest: list[str]):
    done = CliRunner().invoke(specs, [command, str(tmp_path / "parcels"), *rest])

    assert done.exit_code == 1
    assert f"Error: {tmp_path}/parcels is not the folder of a kind: it has no connector.yaml" in done.stderr


def test_the_schema_is_the_one_that_the_specs_name():
    done = CliRunner().invoke(specs, ["schema"])

    assert done.stdout == (shipped_specs() / "spec.schema.json").read_text("utf-8")


def test_a_new_kind_has_no_errors_and_can_be_tried(tmp_path: Path):
    made = CliRunner().invoke(specs, ["new", "parcel-tracking", "--into", str(tmp_path)])
    folder = str(tmp_path / "parcel-tracking")
    linted = CliRunner().invoke(specs, ["lint", folder])
    listed = CliRunner().invoke(specs, ["try", folder, "items", "list", "limit=2"])
    created = CliRunner().invoke(specs, ["try", folder, "items", "create"])

    assert (made.exit_code, linted.stdout, linted.exit_code) == (0, "", 0)
    shown = json.loads(listed.stdout)
    [request] = shown["requests"]
    assert (request["method"], request["path"], request["query"]) == ("GET", "/v1/items", {"limit": "2"})
    assert len(shown["response"]["result"]) == 2
    assert shown["response"]["next"]["cursor"] == shown["response"]["meta"]["next_cursor"]
    assert shown["response"]["incomplete"] is None
    [request] = json.loads(created.stdout)["requests"]
    assert (request["body"], request["status"]) == ({"name": "First item", "state": "open"}, 201)


def test_a_call_that_is_refused_shows_the_request_and_the_error(tmp_path: Path):
    CliRunner().invoke(specs, ["new", "parcels", "--into", str(tmp_path)])

    refused = CliRunner().invoke(specs, ["try", str(tmp_path / "parcels"), "items", "get", "item_id=none"])

    shown = json.loads(refused.stdout)
    assert refused.exit_code != 0
    assert shown["requests"][0]["status"] == 404
    assert shown["error"]["code"] == "upstream_not_found"


def test_shipped_kinds_can_be_tried_by_their_applications_name():
    done = CliRunner().invoke(specs, ["try", "zendesk", "tickets", "list", "per_page=1"])

    shown = json.loads(done.stdout)
    assert shown["requests"][0]["path"] == "/api/v2/tickets.json"
    assert len(shown["response"]["result"]) == 1


@pytest.mark.parametrize("name", ["Parcels", "parcels!", "-x"])
def test_a_name_that_no_kind_can_have_is_refused(tmp_path: Path, name: str):
    done = CliRunner().invoke(specs, ["new", "--into", str(tmp_path), "--", name])

    assert (done.exit_code, list(tmp_path.iterdir())) == (2, [])


def test_a_new_kind_replaces_no_folder(tmp_path: Path):
    (tmp_path / "parcels").mkdir()

    done = CliRunner().invoke(specs, ["new", "parcels", "--into", str(tmp_path)])

    assert done.exit_code == 1
    assert "exists already" in done.stderr

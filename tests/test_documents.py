"""docs/ says of codes, operators, settings and exit codes what the program does, and its links lead somewhere."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.failures import EXIT_CODES
from gateway.errors import GatewayError
from gateway.kinds.actions import SEARCH_ACTION
from gateway.kinds.catalog import Kind
from gateway.kinds.search_operators import Operator
from gateway.operations.searches import prepared_search
from gateway.run.monitoring.health_checks import OLDEST_POSTGRES
from gateway.upstream.prepared import prepare
from gateway.web.console.session import ForeignForm
from gateway.web.error_advice import ADVICE
from gateway.web.errors import status_of
from tests.harness.catalog import shipped_catalog

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md")), ROOT / "deploy/README.md", ROOT / "specs/README.md"]
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE_ROW = re.compile(r"^\| (\d{3}) \| `(\w+)` \| (yes|no) \|", re.MULTILINE)
#: headings as GitHub makes anchors of them: lower case, no punctuation, hyphens for spaces
PUNCTUATION = re.compile(r"[^\w\- ]")


def text(page: str) -> str:
    return (DOCS / page).read_text("utf-8")


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), flags=re.MULTILINE)
    return {PUNCTUATION.sub("", heading.lower()).replace(" ", "-") for heading in headings}


def leads_somewhere(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    return target.exists() and (not anchor or anchor in anchors(target))


def error_classes(root: type[GatewayError] = GatewayError) -> list[type[GatewayError]]:
    """Every class that has a code of its own."""
    below = [each for child in root.__subclasses__() for each in error_classes(child)]
    return [root, *below] if "code" in vars(root) else below


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_between_documents_leads_somewhere(page: Path):
    links = [link for link in LINK.findall(page.read_text("utf-8")) if not link.startswith(("http:", "https:"))]

    assert [link for link in links if not leads_somewhere(page, link)] == []


def test_every_page_stands_on_the_map():
    named = {(DOCS / link.partition("#")[0]).resolve() for link in LINK.findall(text("README.md"))}

    assert [page for page in DOCS.rglob("*.md") if page.resolve() not in named | {DOCS / "README.md"}] == []


def test_every_error_code_is_in_the_reference_with_its_status_and_whether_to_ask_again():
    assert ForeignForm in error_classes()  # those of the pages count too
    raised = {(str(status_of(cls())), cls.code, "yes" if cls.retryable else "no") for cls in error_classes()}

    assert set(CODE_ROW.findall(text("reference/errors.md"))) == raised


def test_the_reference_says_of_each_error_what_its_page_says():
    rows = re.findall(r"^\| \d{3} \| `(\w+)` \| \w+ \| (.+) \|$", text("reference/errors.md"), flags=re.MULTILINE)

    assert {code: re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", advice) for code, advice in rows} == ADVICE


def test_the_reference_says_of_each_operator_what_its_schema_says():
    table = text("reference/query-language.md").partition("## Filters")[2].partition("## Sorting")[0]

    rows = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", table, flags=re.MULTILINE))
    assert rows == {operator.value: operator.meaning for operator in Operator}


def operations_in(page: Path) -> Iterator[dict[str, Any]]:
    """Every JSON object of a page that names an entity and an action, at any depth."""
    text, decoder, position = page.read_text("utf-8"), json.JSONDecoder(), 0
    while (position := text.find("{", position)) >= 0:
        try:
            found, position = decoder.raw_decode(text, position)
        except ValueError:
            position += 1
            continue
        values = [found]
        for value in values:  # grows as it goes
            values += value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        yield from (
            value for value in values if isinstance(value, dict) and {"entity", "action", "params"} <= value.keys()
        )


def fault_of(body: dict[str, Any], kind: Kind) -> str:
    """Why an operation of the kind cannot be called so; an empty text if it can."""
    try:
        if body["action"] == SEARCH_ACTION:
            prepared_search(kind, body["entity"], body["params"])
        elif "$from" not in str(body["params"]):  # values that come from an earlier step
            prepare(kind.operation(body["entity"], body["action"]), body["params"])
    except GatewayError as error:
        return error.detail
    return ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_operation_in_an_example_can_be_called(page: Path):
    faults = {
        json.dumps(body): [fault_of(body, kind) for kind in shipped_catalog() if body["entity"] in kind.spec.entities]
        for body in operations_in(page)
    }

    assert {body: each for body, each in faults.items() if "" not in each} == {}


@pytest.mark.parametrize("page", ["deploy/README.md", "CHANGELOG.md"])
def test_the_oldest_postgresql_in_a_document_is_that_of_the_doctor(page: str):
    named = re.findall(r"PostgreSQL \(?(\d+) or later", (ROOT / page).read_text("utf-8"))

    assert named == [str(OLDEST_POSTGRES // 10000)]


def test_every_kind_stands_among_the_concepts():
    kinds = {kind.name for kind in shipped_catalog()}

    assert set(re.findall(r"\| `([\w-]+)` \|$", text("concepts.md"), flags=re.MULTILINE)) == kinds
    assert f"A type of application. {len(kinds)} are included:" in text("concepts.md")


def test_the_first_sentence_counts_the_kinds():
    [named, others] = re.findall(
        r"business applications: (.*?)\[(\d+) more\]", (ROOT / "README.md").read_text("utf-8"), re.DOTALL
    )[0]

    assert named.count(",") + int(others) == len([*shipped_catalog()])


def operations_with(member: str) -> set[str]:
    """`application entity.action` of the shipped operations whose actions have this member."""
    return {
        f"{kind.spec.application} {name}.{action}"
        for kind in shipped_catalog()
        for name, entity in kind.spec.entities.items()
        for action, spec in entity.actions.items()
        if getattr(spec, member)
    }


def operations_of(rows: str) -> set[str]:
    """`application entity.action` of the operations that a table names in its first columns."""
    found = set()
    for application, cells in re.findall(r"^\| ([A-Z]\w+)(?: \|)? (`.*)$", rows, flags=re.MULTILINE):
        entity = ""
        for name in re.findall(r"`([a-z_]+(?:\.[a-z_]+)?)`", cells.partition(" |")[0]):
            entity, action = name.split(".") if "." in name else (entity, name)
            found.add(f"{application} {entity}.{action}")
    return found


def test_every_long_operation_and_every_bulk_request_is_in_its_table():
    jobs = text("how-to/jobs.md").partition("## Operations that the application runs")[2]
    bulk = text("how-to/batches.md").partition("## Bulk requests")[2].partition("Results do not change")[0]

    assert operations_of(jobs) == operations_with("long_running")
    assert operations_of(bulk) >= operations_with("bulk")


def test_every_kind_that_sends_notices_is_in_the_table_of_their_secrets():
    rows = re.findall(r"^\| ([a-z][a-z, -]*)(?: \([^)]*\))? \| ", text("how-to/webhooks-in.md"), flags=re.MULTILINE)
    named = {name for row in rows for name in row.split(", ")} - {"kind"}

    assert named == {kind.name for kind in shipped_catalog() if kind.spec.webhooks}


def test_the_page_on_finding_says_how_many_operations_there_are():
    operations = sum(len(entity.actions) for kind in shipped_catalog() for entity in kind.spec.entities.values())
    [said] = re.findall(r"have more than ([\d,]+) operations", text("how-to/find-operations.md"))

    assert int(said.replace(",", "")) <= operations < 1.1 * int(said.replace(",", ""))


def test_every_exit_code_is_in_the_reference():
    meanings = set(re.findall(r"^  (\d+)  +(.+)$", EXIT_CODES, flags=re.MULTILINE))

    assert set(re.findall(r"^\| (\d+) \| (.+) \|$", text("reference/command-line.md"), flags=re.MULTILINE)) == meanings


def test_every_room_is_in_the_guide_and_in_the_table_of_the_architecture():
    table = text("architecture.md").partition("| Room |")[2].partition("| To change")[0]
    guide = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    packages = {path.parent.name for path in (ROOT / "gateway").glob("*/__init__.py")}

    assert packages - set(re.findall(r"`(\w+)/", table)) == set()
    assert packages - set(re.findall(r"(\w+)/", guide)) == set()


def test_every_folder_of_tests_is_in_their_table():
    table = (ROOT / "tests/README.md").read_text("utf-8")
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/test_*.py")}

    assert folders - set(re.findall(r"`(\w+)/", table)) == set()

"""Every kind: each action as it goes over the wire, what is refused before, and every answer as it comes back."""

from collections.abc import Callable, Iterable, Mapping
from itertools import zip_longest
from typing import Any

import pytest

from gateway.errors import GatewayError, InvalidCredentials, InvalidParams, UpstreamFault
from gateway.kinds.params import validated
from gateway.upstream.auth import checked_credentials
from tests.upstream.judged import read
from tests.upstream.kinds.cases import Cases, Pages, all_cases, response
from tests.upstream.kinds.conftest import kind_named

KINDS = all_cases()
each_kind = pytest.mark.parametrize("cases", KINDS, ids=lambda cases: cases.kind)


def each(table: Callable[[Cases], Iterable[Any]], name: Callable[[Any], object] = lambda _: "") -> pytest.MarkDecorator:
    """A test for each case of a table of each kind."""
    found = [pytest.param(cases, case, id=f"{cases.kind} {name(case)}") for cases in KINDS for case in table(cases)]
    return pytest.mark.parametrize(("cases", "case"), found)


@each_kind
def test_every_action_has_a_case(cases):
    assert {call.action for call in cases.calls} == {str(each) for each in kind_named(cases.kind).operations.values()}


@each_kind
def test_an_action_makes_its_request(subtests, offline, cases: Cases):
    connector = offline(cases.kind, **cases.environment)
    for case in cases.calls:
        with subtests.test(case.action):
            case.assert_sent_by(connector, cases.address, cases.headers)


@each_kind
def test_every_example_is_valid(cases: Cases):
    for operation in kind_named(cases.kind).operations.values():
        example = operation.action.example
        assert validated(operation, example).keys() >= example.keys(), operation.name


@each_kind
def test_params_that_cannot_be_sent_are_refused_with_the_way_to_mend_them(subtests, cases: Cases):
    for case in cases.refused:
        with subtests.test(case.action, params=case.params):
            with pytest.raises(InvalidParams) as refused:
                validated(kind_named(cases.kind).operation(*case.action.split(".")), case.params)

            found = {fault.field: fault.message for fault in refused.value.faults}
            assert found.keys() == {case.field, *case.others}
            assert case.said in found[case.field]


@each_kind
def test_an_answer_is_read_into_records_and_meta(subtests, cases: Cases):
    for case in cases.answers:
        with subtests.test(case.action):
            operation = kind_named(cases.kind).operation(*case.action.split("."))

            answer = read(operation, response(200, {}, case.body))

            assert answer.decoded() == case.records
            assert answer.meta == case.meta


@each_kind
def test_a_failure_is_read_for_what_it_means(subtests, cases: Cases):
    for case in cases.failures:
        with subtests.test(f"{case.status} {case.code}"):
            operation = kind_named(cases.kind).operation(*case.action.split("."))

            with pytest.raises(GatewayError) as raised:
                read(operation, response(case.status, case.headers, case.body))

            fault = UpstreamFault(
                status=case.status, code=case.code, message=case.message, request_id=case.request_id, field=case.field
            )
            assert type(raised.value) is case.error
            assert raised.value.upstream == fault
            assert case.retry_after in (None, raised.value.retry_after)


@each_kind
def test_credentials_that_do_not_fit_are_named(subtests, cases: Cases):
    for case in cases.bad_credentials:
        with subtests.test(case.field):
            with pytest.raises(InvalidCredentials) as refused:
                checked_credentials(kind_named(cases.kind).spec, case.credentials)

            assert [fault.field for fault in refused.value.faults] == [case.field]
            assert case.said in refused.value.detail


@each(lambda cases: cases.authorizations)
async def test_the_health_check_requests_little_with_the_credentials_of_its_method(
    upstream, connect, cases: Cases, case
):
    (credentials, header), (address, answer) = case, cases.check
    upstream.answers(answer)

    await connect(cases.kind, credentials, **cases.environment).check()

    [asked] = upstream.received
    kind = kind_named(cases.kind)
    sent = kind.health_check.instead(kind.spec.health_check_params)
    assert (asked.method, asked.url.raw_path_qs) == (sent.method, address)
    assert asked.headers[_header_of(cases, credentials)] == header
    assert cases.headers.items() <= asked.headers.items()


@each(lambda cases: cases.pages, lambda pages: pages.action)
async def test_pages_are_turned_with_the_credentials_on_each_request(upstream, connect, cases: Cases, case: Pages):
    for answer, headers in zip_longest(case.answers, case.headers):
        upstream.answers(answer, headers=headers)
    credentials, header = cases.authorizations[0]
    connector = connect(cases.kind, credentials, **cases.environment)

    pages, following = [], case.params
    while following is not None:
        page = await connector.execute(*case.action.split("."), following)
        pages.append(page.decoded())
        following = page.next

    assert pages == case.records
    assert [asked.url.raw_path_qs for asked in upstream.received] == case.asked
    assert {asked.headers[_header_of(cases, credentials)] for asked in upstream.received} == {header}
    if case.sent:
        assert [asked.body for asked in upstream.received] == case.sent


def _header_of(cases: Cases, credentials: Mapping[str, str]) -> str:
    """The header that holds the credentials of their method."""
    spec = kind_named(cases.kind).spec
    return spec.authentication[checked_credentials(spec, credentials)[0]].header_names[0]

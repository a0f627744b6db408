"""Errors without the application's text, for callers for whom policies redact members."""

import pytest

from gateway.errors import GatewayError, NotFound, UpstreamFault, UpstreamRejected, with_unknown_outcome
from gateway.upstream.withheld import LEFT_OUT, withheld, without_text

VALUE = "vera@example.com"


@pytest.mark.parametrize(
    ("fault", "code", "field"),
    [
        (UpstreamFault(status=422, message=VALUE), None, None),
        (UpstreamFault(status=422, code="Invalid", message=f"{VALUE} is taken", field="email"), "Invalid", "email"),
        (UpstreamFault(status=400, code="BAD.email/1", field="a[0].email, b_c"), "BAD.email/1", "a[0].email, b_c"),
        (UpstreamFault(status=422, code="40012", message=VALUE), "40012", None),
        (UpstreamFault(status=422, code=f"taken by {VALUE}", message="taken", field=VALUE), None, None),
        (UpstreamFault(status=422, code="+49 30 12345678"), None, None),
        (UpstreamFault(status=422, code="4111111111111111"), None, None),
    ],
)
def test_an_error_has_its_status_its_code_and_names_of_members_but_no_text(fault, code, field):
    parts = ": ".join(filter(None, (fault.code, fault.message)))
    error = UpstreamRejected(
        f"the application answered {fault.status}: {parts} ({fault.field}); 3 done", upstream=fault
    )

    left = without_text(error)

    assert (left.upstream.status, left.upstream.code, left.upstream.field, left.upstream.message) == (
        fault.status,
        code,
        field,
        None,
    )
    assert type(left) is UpstreamRejected
    assert left.detail == str(left)
    assert left.detail.endswith("; 3 done")
    assert all(text in left.detail for text in filter(None, (code, field)))
    assert (LEFT_OUT in left.detail) == bool(fault.message or code != fault.code)
    assert not any(text in left.detail for text in (VALUE, "12345678", "4111"))
    assert error.upstream is fault


def test_what_is_known_of_a_write_and_the_gateways_own_errors_stay():
    unknown = with_unknown_outcome(
        UpstreamRejected(VALUE, upstream=UpstreamFault(message=VALUE)), {"request_sent": True}, safe_to_retry=False
    )
    own = NotFound("there is no such connector")

    assert without_text(unknown).extra == unknown.extra
    assert without_text(unknown).is_outcome_unknown
    assert without_text(own) is own


@pytest.mark.parametrize("redact", [(), ("email",)])
def test_only_errors_of_calls_with_redacted_members_lose_their_text(redact):
    with pytest.raises(GatewayError) as raised, withheld(redact):
        raise UpstreamRejected(f"no: {VALUE}", upstream=UpstreamFault(status=422, message=VALUE))

    assert (VALUE in str(raised.value)) is not bool(redact)
    assert (raised.value.upstream.message == VALUE) is not bool(redact)

"""Whether a request asks for one record per line (RFC 9110 §12.5.1)."""

import pytest
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict

from gateway.web.bodies import accepts_lines


@pytest.mark.parametrize(
    ("accept", "is_accepted"),
    [
        (["application/x-ndjson"], True),
        (["Application/X-NDJSON"], True),
        (["application/json, application/x-ndjson"], True),
        (["application/json;q=0.5, application/x-ndjson;q=0.8"], True),
        (["application/json", "application/x-ndjson"], True),
        (["application/x-ndjson;q=0.8, */*;q=0.1"], True),
        (["application/json, application/x-ndjson;q=0.1"], False),
        (["application/x-ndjson;q=0"], False),
        (["application/x-ndjson-seq"], False),
        (["application/json"], False),
        (["*/*"], False),
        ([], False),
    ],
)
def test_lines_are_sent_to_callers_that_ask_for_them(accept, is_accepted):
    headers = CIMultiDict(("Accept", line) for line in accept)

    assert accepts_lines(make_mocked_request("GET", "/", headers)) == is_accepted

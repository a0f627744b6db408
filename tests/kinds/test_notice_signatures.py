"""The keys of webhook secrets."""

import pytest

from gateway.kinds.notice_signatures import key_of
from gateway.kinds.notices import NoticeSignature

SIGNATURE = NoticeSignature(header="webhook-signature", secret_prefix="whsec_", secret_encoding="base64")


@pytest.mark.parametrize("secret", ["whsec_not!base64", "whsec_Q0FOQVJZ–"])
def test_an_error_for_a_secret_that_is_not_base64_names_the_prefix(secret: str):
    with pytest.raises(ValueError, match="must be Base64 after whsec_; copy all of it"):
        key_of(SIGNATURE, secret)

"""The keys of webhook secrets."""

import pytest

from gateway.kinds.notice_signatures import key_of
from gateway.kinds.notices import NoticeSignature

SIGNATURE = NoticeSignature(header="webhook-signature", secret_prefix="whsec_", secret_encoding="base64")


@pytest.mark.parametrize("secret", ["whsec_not!base64", "whsec_Q0FOQVJZ–"])
def test_a_secret_that_is_not_base64_is_refused_with_its_prefix(secret: str):
    with pytest.raises(ValueError, match="is Base64 after whsec_; copy it whole"):
        key_of(SIGNATURE, secret)

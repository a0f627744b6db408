"""Private keys in credentials: every form in which people give them, and what is wrong with others."""

import json

import pytest
from cryptography.hazmat.primitives.serialization import PrivateFormat

from gateway.kinds.authentication import Assertion
from gateway.upstream.private_keys import BadKey, read_private_key
from tests.harness.signing_keys import key_file, parts_of, pem, public_pem

PEM = Assertion(key="private_key", claims={"iss": "{client_id}"})
FILE = Assertion(key="credentials_json", key_member="private_key", claims={"iss": "{client_email}"})


@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
@pytest.mark.parametrize(
    "given",
    [
        lambda text: text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\\n"),
        lambda text: text.replace("\n", "\\\\n"),
        lambda text: text.replace("\n", " "),
        lambda text: f"Bag Attributes\n  friendlyName: gateway\n{text}\n\n",
    ],
    ids=["as it is", "CRLF", "escaped", "escaped twice", "one line", "with words around it"],
)
def test_a_key_is_read_in_every_form_in_which_it_is_given(form, given):
    text = pem(form=form)

    assert read_private_key(PEM, given(text)).pem == text


def test_a_key_file_gives_the_key_and_its_other_texts():
    found = read_private_key(FILE, f"\ufeff{key_file(universe=7)}")

    assert found.pem == pem()
    assert found.members["client_email"] == "reports@acme.iam.gserviceaccount.com"
    assert "private_key" not in found.members
    assert "universe" not in found.members
    assert repr(found) == "PrivateKey()"


WRONG_PEM = [
    ("hello", "is not PEM: it must begin with -----BEGIN PRIVATE KEY-----"),
    (pem()[:200], "is not PEM"),
    (pem(passphrase=b"secret"), "is encrypted with a passphrase: decrypt it first"),
    (pem(form=PrivateFormat.TraditionalOpenSSL, passphrase=b"secret"), "is encrypted with a passphrase"),
    (public_pem(), r"is PEM of a different kind \(PUBLIC KEY\)"),
    (pem().replace("PRIVATE KEY", "CERTIFICATE"), r"is PEM of a different kind \(CERTIFICATE\)"),
    (pem().replace("PRIVATE KEY", "EC PRIVATE KEY"), r"is PEM of a different kind \(EC PRIVATE KEY\)"),
    (pem().replace("M", "*", 1), "is damaged: what is between its first and last line is not base64"),
]


@pytest.mark.parametrize(("text", "reason"), WRONG_PEM)
def test_a_text_that_is_no_usable_key_says_why_and_repeats_no_part_of_it(text, reason):
    with pytest.raises(BadKey, match=f"^private_key {reason}") as alone:
        read_private_key(PEM, text)
    with pytest.raises(BadKey, match=f"^private_key of credentials_json {reason}") as in_file:
        read_private_key(FILE, key_file(private_key=text))

    lines = {*parts_of(pem()), *parts_of(text)}
    assert [line for line in lines if line[:16] in f"{alone.value!r}{in_file.value!r}"] == []
    assert (alone.value.__cause__, alone.value.__suppress_context__) == (None, alone.value.__context__ is not None)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"private_key": ', "is not valid JSON: give the whole text of the key file"),
        ("key.json", "is not valid JSON"),
        ("\ud800", "is not valid JSON"),
        ("[" * 30_000, "is not valid JSON"),
        ("[1]", "is JSON, but not an object"),
        (json.dumps({"installed": {"client_id": "x"}}), "has no private_key"),
        (key_file(private_key=7), "has no private_key"),
        (pem(), "is PEM: give the whole text of the key file, which is JSON"),
    ],
)
def test_a_text_that_is_no_key_file_says_why(text, reason):
    with pytest.raises(BadKey, match=f"^credentials_json {reason}"):
        read_private_key(FILE, text)

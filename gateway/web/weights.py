"""The weights of `Accept` and `Accept-Encoding` (RFC 9110 §12.4.2). Pure."""

import re

_WEIGHT = re.compile(r"q=([01](?:\.[0-9]{0,3})?)", re.IGNORECASE)


def weights_of(accepted: str) -> dict[str, float]:
    """The media ranges or codings of a header, in lower case, with their weights; 1 for one without a weight."""
    return dict(map(_weighted, accepted.split(",")))


def _weighted(choice: str) -> tuple[str, float]:
    name, *parameters = ("".join(part.split()) for part in choice.split(";"))
    weights = [match[1] for each in parameters if (match := _WEIGHT.fullmatch(each))]
    return name.lower(), float(weights[0]) if weights else 1.0

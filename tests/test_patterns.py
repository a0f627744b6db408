"""Every regular expression of the gateway is linear: foreign text must not stop a process by its form."""

import importlib
import inspect
import pkgutil
import re
import time

import pytest

import gateway

#: repeated, each of them is the worst case of some careless pattern
PUMPS = (
    *("a", "a-", "a.", "a,", "a=", "ab ", "A", "1", "1-", "1,", "é", "_", "-", " ", "\t", "\n", " \t"),
    *(
        "\\",
        "\\\\",
        "\\'",
        "'",
        '"',
        '\\"',
        ";",
        "; ",
        ";a=",
        ';a="',
        ",",
        "=",
        ":",
        "://",
        "://a",
        "/",
        "%",
        "@",
        "(",
        "{",
        "<",
        "<a>;",
    ),
    *("token", "token ", "token=", "token-", "bearer ", "basic", "secret: ", "api_key"),
    *("select ", "limit ", "group by ", "from ", "count ", "bytes=0-", "0-1,", "with ", "a/b"),
)
#: at the end, so that a pattern which has come there goes back and tries again
END = "!"
CHARACTERS = 10_000
#: a linear pattern takes a few milliseconds for so much, a quadratic one half a second and more
SECONDS = 0.1


def _patterns(value):
    if isinstance(value, re.Pattern):
        return [value]
    if isinstance(value, tuple | list):
        return [pattern for each in value for pattern in _patterns(each)]
    return []


def all_patterns():
    """The patterns that modules hold, by name, and whether they are matched at a text's beginning only."""
    found = {}
    for module in pkgutil.walk_packages(gateway.__path__, "gateway."):
        if module.name.startswith(("gateway.sandbox", "gateway.cli")) or module.name == "gateway.__main__":
            continue  # they see what their own user gives them
        imported = importlib.import_module(module.name)
        source = inspect.getsource(imported)
        patterns = ((name, pattern) for name, value in vars(imported).items() for pattern in _patterns(value))
        for name, pattern in patterns:
            is_whole = set(re.findall(rf"\b{name}\.(\w+)", source)) <= {"match", "fullmatch"}
            found[f"{module.name}.{name} {pattern.pattern!r}"] = (pattern, is_whole)
    return found


def took(pattern, text, *, is_whole=False):
    """The seconds that the pattern takes for the text, the better of two tries."""
    text = text.encode() if isinstance(pattern.pattern, bytes) else text
    tries = []
    for _ in range(2):
        started = time.process_time()
        if is_whole:
            pattern.match(text)
            pattern.fullmatch(text)
        else:
            sum(1 for _ in pattern.finditer(text))
        tries.append(time.process_time() - started)
        if tries[-1] < SECONDS:
            break
    return min(tries)


PATTERNS = all_patterns()


@pytest.mark.parametrize("which", PATTERNS)
def test_a_pattern_is_linear(which):
    pattern, is_whole = PATTERNS[which]
    slow = [
        pump for pump in PUMPS if took(pattern, pump * (CHARACTERS // len(pump)) + END, is_whole=is_whole) > SECONDS
    ]

    assert slow == []


def test_the_search_finds_a_quadratic_one():
    quadratic = re.compile(r"\b([\w-]*(?:token|secret))\s*[=:]")

    assert took(quadratic, "a-" * (CHARACTERS // 2)) > SECONDS

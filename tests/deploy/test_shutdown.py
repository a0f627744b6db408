"""Whoever stops a process gives it longer than it takes by itself, with some seconds for stores that do not answer."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.embedded import plan
from gateway.embedded.plan import UpOptions
from gateway.settings import Settings

DEPLOY = Path(__file__).parents[2] / "deploy"
GRACE = Settings.model_fields["shutdown_grace"].default
#: seconds that closing the stores takes at most where none of them answers
CLOSED = 10


def pod(name: str) -> dict[str, Any]:
    document = next(iter(yaml.safe_load_all((DEPLOY / "kubernetes" / f"{name}.yaml").read_text("utf-8"))))
    return document["spec"]["template"]["spec"]


def pause(container: dict[str, Any]) -> int:
    """Seconds that a pod's `preStop` takes off its grace."""
    command = container.get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command", ["sleep", "0"])
    return int(command[1])


@pytest.mark.parametrize("role", ["front-end", "worker"])
def test_systemd_waits_long_enough(role: str):
    unit = (DEPLOY / "systemd" / f"gateway-{role}@.service").read_text("utf-8")

    assert int(re.findall(r"^TimeoutStopSec=(\d+)$", unit, re.M)[0]) >= GRACE + CLOSED


def test_compose_waits_long_enough():
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))["services"]

    for name in ("front-end", "worker"):
        assert int(services[name]["stop_grace_period"].removesuffix("s")) >= GRACE + CLOSED


@pytest.mark.parametrize("name", ["front-end", "worker"])
def test_kubernetes_waits_long_enough(name: str):
    spec = pod(name)

    assert spec["terminationGracePeriodSeconds"] >= pause(spec["containers"][0]) + GRACE + CLOSED


@pytest.mark.parametrize(("environment", "grace"), [({}, GRACE), ({"GATEWAY_SHUTDOWN_GRACE": "90"}, 90)])
def test_gateway_up_waits_long_enough(environment: dict[str, str], grace: float):
    options = UpOptions(data_dir=Path("/data"))

    for program in (*plan.front_ends(options, environment), *plan.workers(options, environment)):
        assert program.grace >= grace + CLOSED

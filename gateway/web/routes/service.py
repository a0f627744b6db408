"""The gateway's own endpoints: root, probes, metrics, the OpenAPI document and the documentation."""

from gateway.access.identity.model import Scope
from gateway.contract.gateway_state import AliveView, HealthCheckList, ReadinessView, RootView
from gateway.web.api import operations
from gateway.web.docs_site import handlers as docs_site
from gateway.web.route import Route

ADMIN = Scope.ADMIN

ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        "/api/v1/health/checks",
        operations.list_health_checks,
        "Check the gateway and the organization's work",
        "Operations",
        response=HealthCheckList,
        scope=ADMIN,
    ),
    Route(
        "GET",
        "/",
        operations.root,
        "URLs of the API and its documents",
        "Operations",
        response=RootView,
        answers={
            200: "The URLs of the API and its documents",
            303: "Redirects a browser to the console or the documentation",
        },
        sends={200: ("Vary",), 303: ("Location", "Vary")},
        is_open=True,
    ),
    Route(
        "GET",
        "/healthz",
        operations.healthz,
        "Whether the process runs",
        "Operations",
        response=AliveView,
        is_open=True,
        is_probe=True,
    ),
    Route(
        "GET",
        "/readyz",
        operations.readyz,
        "Whether to send traffic here",
        "Operations",
        response={200: ReadinessView, 503: ReadinessView},
        answers={200: "Ready", 503: "Not ready"},
        is_open=True,
        is_probe=True,
        command="gateway status",
    ),
    Route(
        "GET",
        "/metrics",
        operations.metrics,
        "Metrics for Prometheus",
        "Operations",
        media={200: ("text/plain",)},
        is_open=True,
        is_probe=True,
    ),
    Route(
        "GET",
        "/openapi.json",
        operations.openapi,
        "This document",
        "Operations",
        answers={200: "The document", 304: "It has not changed"},
        media={200: ("application/json",)},
        reads=("If-None-Match",),
        sends={200: ("ETag", "Vary", "Cache-Control"), 304: ("ETag", "Vary", "Cache-Control")},
        is_open=True,
    ),
    Route(
        "GET",
        "/docs",
        docs_site.docs,
        "The documentation",
        "Operations",
        media={200: ("text/html",)},
        sends={200: ("Content-Security-Policy", "Cache-Control")},
        is_open=True,
    ),
)

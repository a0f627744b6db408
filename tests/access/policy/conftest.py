"""Fixtures: the catalog's schema of policies."""

from uuid import UUID

import pytest

from gateway.access.policy.language import Schema
from gateway.access.policy.model import PolicyCall, Target
from gateway.access.policy.schema import document
from gateway.contract.kinds import Effect
from gateway.contract.policies import Surface
from gateway.kinds.catalog import Catalog
from gateway.kinds.loading import load_catalog
from gateway.upstream.prepared import prepare

CLIENT = UUID("11111111-1111-1111-1111-111111111111")
CONNECTOR = UUID("22222222-2222-2222-2222-222222222222")
TARGET = Target(connector_id=CONNECTOR, name="Desk", workspace_name="emea", kind="support-desk")
EVERYTHING = "permit(principal, action, resource);"


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return load_catalog()


@pytest.fixture(scope="session")
def schema(catalog: Catalog) -> Schema:
    return Schema.of(document(catalog))


@pytest.fixture(scope="session")
def call_of(catalog: Catalog):
    """A call of the support desk."""

    def call(operation="tickets.list", params=None, surface=Surface.HTTP, client=CLIENT, target=TARGET):
        entity, _, action = operation.partition(".")
        if action == "context_store_search":
            members = {"effect": Effect.READ, "params": params or {}}
        else:
            prepared = prepare(catalog.kind("support-desk").operation(entity, action), params or {})
            members = {"effect": prepared.effect, "params": prepared.params, "operation": prepared.operation}
        return PolicyCall(client_id=client, target=target, entity=entity, action=action, surface=surface, **members)

    return call

"""People of an organization with tokens and own connectors, added in bulk."""

import json
from collections.abc import Mapping, Sequence
from uuid import UUID, uuid4

import asyncpg

from gateway.access.identity.tokens import hashed
from gateway.connectors.model import binding
from gateway.foundation.vault.vault import Vault, parse_keys
from tests.harness.processes import KEYS

_ADD = """
    WITH given AS (SELECT * FROM unnest($2::uuid[], $3::bytea[]) AS given (id, token)), new AS (
        INSERT INTO clients (id, name, secret_hashes, scopes) SELECT id, 'person', '{}', '{read,write}' FROM given
    ), acting AS (
        INSERT INTO client_organizations (client_id, organization_id) SELECT id, $1 FROM given
    ), people AS (
        INSERT INTO people (client_id) SELECT id FROM given
    ), members AS (
        INSERT INTO group_members (organization_id, group_name, client_id) SELECT $1, 'staff', id FROM given
    )
    INSERT INTO tokens (hash, client_id, expires_at)
    SELECT token, id, now() + make_interval(secs => $4) FROM given
"""
_COPY = """
    INSERT INTO connectors ({columns}) SELECT {columns} FROM (
        SELECT (jsonb_populate_record(NULL::connectors, to_jsonb(template) || jsonb_build_object(
            'id', given.id, 'owner_id', given.owner_id, 'account_id', gen_random_uuid()
        ))).*
        FROM connectors AS template, unnest($2::uuid[], $3::uuid[]) AS given (id, owner_id) WHERE template.id = $1
    ) AS copied
"""
_COLUMNS = """
    SELECT string_agg(quote_ident(column_name), ', ') FROM information_schema.columns
    WHERE table_name = 'connectors' AND is_generated = 'NEVER'
"""
_SEAL = """
    INSERT INTO connector_secrets (connector_id, organization_id, key_id, wrapped_key, sealed)
    SELECT id, $1, key_id, wrapped_key, sealed
    FROM unnest($2::uuid[], $3::text[], $4::bytea[], $5::bytea[]) AS given (id, key_id, wrapped_key, sealed)
"""
_TEMPLATE = "SELECT kind, environment::text AS environment FROM connectors WHERE id = $1"


async def add_people(database_url: str, organization_id: UUID, tokens: Mapping[UUID, str], seconds: int) -> None:
    """Add people of the group `staff`, which exists, by their ids, with tokens that are valid for so many seconds."""
    database = await asyncpg.connect(database_url)
    try:
        hashes = [hashed(token) for token in tokens.values()]
        await database.execute(_ADD, organization_id, list(tokens), hashes, seconds)
    finally:
        await database.close()


async def copy_connector(
    database_url: str,
    organization_id: UUID,
    template: UUID,
    owners: Sequence[UUID],
    credentials: Sequence[Mapping[str, str]],
) -> Sequence[UUID]:
    """A copy of the connector for each owner, with credentials of its own; the ids of the copies."""
    vault, own = Vault(parse_keys(KEYS)), [uuid4() for _ in owners]
    database = await asyncpg.connect(database_url)
    try:
        await database.execute(_COPY.format(columns=await database.fetchval(_COLUMNS)), template, own, list(owners))
        row = await database.fetchrow(_TEMPLATE, template)
        environment = json.loads(row["environment"])
        sealed = [
            vault.seal(each, binding(organization_id, id_, row["kind"], environment))
            for id_, each in zip(own, credentials, strict=True)
        ]
        columns = zip(*((each.key_id, each.wrapped_key, each.sealed) for each in sealed), strict=True)
        await database.execute(_SEAL, organization_id, own, *(list(column) for column in columns))
        await database.execute("ANALYZE connectors, connector_secrets, people, clients")
    finally:
        await database.close()
    return own

"""The role with which processes log in to the embedded PostgreSQL: not a superuser, and owner of nothing."""

import asyncpg

# Processes execute everything as `gateway_app`, which the migrations create; this role may only switch to it.
_CREATE = """
    DO $$
    BEGIN
        CREATE ROLE {role} LOGIN;
    EXCEPTION WHEN duplicate_object THEN
        NULL;
    END
    $$
"""
_CONFINE = "ALTER ROLE {role} NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS"
_GRANT = "GRANT gateway_app TO {role}"


async def ensure_service_role(url: str, role: str) -> None:
    """Create the role if it does not exist, as the superuser of the URL; its name is fixed and needs no quoting."""
    connection = await asyncpg.connect(url, timeout=10)
    try:
        for statement in (_CREATE, _CONFINE, _GRANT):
            await connection.execute(statement.format(role=role))
    finally:
        await connection.close()

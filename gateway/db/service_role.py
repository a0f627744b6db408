"""The role that processes log in as where the gateway sets PostgreSQL up itself: no superuser, owner of nothing."""

import asyncpg

# What a process does it does as `gateway_app`, which the migrations make; this one may only become it.
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
    """Make the role if need be, as the superuser of the URL; the name is ours and needs no quoting."""
    connection = await asyncpg.connect(url, timeout=10)
    try:
        for statement in (_CREATE, _CONFINE, _GRANT):
            await connection.execute(statement.format(role=role))
    finally:
        await connection.close()

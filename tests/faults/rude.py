"""Every list and every copy of every kind, read from an application that is rude in every way: kinds × behaviours.

python -m tests.faults.rude
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import uuid4

import asyncpg

from gateway.context_store.sync import sources
from gateway.foundation.db.pool import Database
from gateway.kinds.catalog import Kind
from gateway.sandbox.rude import Behaviour
from tests.harness.catalog import shipped_catalog
from tests.harness.rude import Played, list_faults, lists_of, played, read
from tests.harness.rude_copies import Copying, copy_faults
from tests.harness.stores import own_stores

#: the share of the usual records
SCALE = 0.2
CONNECTOR = """
    WITH o AS (INSERT INTO organizations (id, name) VALUES ($1::uuid, $1::uuid::text) RETURNING id),
         w AS (INSERT INTO workspaces (id, organization_id, name) SELECT $1::uuid, id, 'rude' FROM o RETURNING id)
    INSERT INTO connectors (id, organization_id, workspace_id, kind, name, status)
    SELECT $1::uuid, $1::uuid, id, $2, 'Rude', 'active' FROM w
"""


@dataclass
class Matrix:
    """What is wrong with the lists and copies of each kind, by behaviour."""

    #: kind → its lists and copies
    sizes: dict[str, tuple[int, int]] = field(default_factory=dict)
    faults: dict[tuple[str, Behaviour], list[str]] = field(default_factory=dict)

    @property
    def is_clean(self) -> bool:
        return not any(self.faults.values())

    def table(self) -> str:
        """A line for each kind with the number of faults by behaviour, and the faults below."""
        names = {behaviour: str(number) for number, behaviour in enumerate(Behaviour, 1)}
        head = f"{'':20}{'lists':>6}{'copies':>7}  " + "".join(f"{name:>4}" for name in names.values())
        lines = [
            f"{kind:20}{lists:>6}{copies:>7}  "
            + "".join(f"{len(self.faults[kind, behaviour]):>4}" for behaviour in Behaviour)
            for kind, (lists, copies) in self.sizes.items()
        ]
        legend = ", ".join(f"{number} {behaviour}" for behaviour, number in names.items())
        found = [f"{kind} {behaviour} {fault}" for (kind, behaviour), each in self.faults.items() for fault in each]
        return "\n".join([head, *lines, "", legend, *found])


async def matrix(kinds: Mapping[str, Kind] | None = None) -> Matrix:
    """Read every list and every copy of these kinds, by default all."""
    found = Matrix()
    async with own_stores() as stores, Database.open(stores.postgres.url, command_timeout=10) as database:
        for kind in (kinds or shipped_catalog().kinds).values():
            async with played(kind, SCALE) as application:
                await _play(found, application, database, stores.postgres.url)
    return found


async def _play(found: Matrix, application: Played, database: Database, url: str) -> None:
    kind = application.kind
    lists, names = lists_of(kind), sources.synchronized(kind)
    found.sizes[kind.name] = len(lists), len(names)
    truth = await (await copying_of(application, database, url)).full(names)
    for behaviour in Behaviour:
        faults = found.faults[kind.name, behaviour] = []
        for operation in lists:
            await application.reset()
            polite = await read(application.connector(), operation)
            faults += [
                f"{operation}: {each}" for each in await list_faults(application, operation, polite.records, behaviour)
            ]
        faults += await copy_faults(await copying_of(application, database, url), truth, behaviour)


async def copying_of(application: Played, database: Database, url: str) -> Copying:
    """The copies of a new connector."""
    id_ = uuid4()
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(CONNECTOR, id_, application.kind.name)
    finally:
        await connection.close()
    return Copying(database=database, organization_id=id_, connector_id=id_, application=application)


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    print(asyncio.run(matrix()).table())

"""Runs `up` with first steps and children for tests: `run_up.py DATA_DIR READY_FILE [OPTION=JSON…]`."""

import asyncio
import json
import sys
from pathlib import Path

import asyncpg

from gateway.embedded import StartupError
from gateway.embedded.first_run import Credentials
from gateway.embedded.up import FirstSteps, UpOptions, up
from gateway.settings import SettingsError

STAND_IN = (sys.executable, str(Path(__file__).with_name("stand_in.py")))


async def migrate(url):
    connection = await asyncpg.connect(url)
    await connection.execute("CREATE TABLE IF NOT EXISTS clients (id text); GRANT ALL ON clients TO PUBLIC")
    await connection.close()


async def service_role(url, role):
    connection = await asyncpg.connect(url)
    if not await connection.fetchval("SELECT count(*) FROM pg_roles WHERE rolname = $1", role):
        await connection.execute(f"CREATE ROLE {role} LOGIN")
    await connection.close()


async def first_client(url):
    connection = await asyncpg.connect(url)
    is_first = await connection.fetchval("SELECT count(*) = 0 FROM clients")
    await connection.execute("INSERT INTO clients VALUES ('first')")
    await connection.close()
    return Credentials(client_id="first", client_secret="sesame", organization_id="org") if is_first else None


def main(data_dir, ready_file, *words):
    options = {"bind": "127.0.0.1:0", "command": STAND_IN}
    options |= {name: json.loads(value) for name, _, value in (word.partition("=") for word in words)}
    up_options = UpOptions(data_dir=Path(data_dir), ready_file=Path(ready_file), **options)
    try:
        asyncio.run(up(up_options, FirstSteps(migrate, service_role, first_client)))
    except (StartupError, SettingsError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(*sys.argv[1:])

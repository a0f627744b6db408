"""The services of a worker on real stores."""

from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.run.services import Services, open_worker
from gateway.settings import Settings


@pytest.fixture
async def services(database_url: str, redis_url: str, tmp_path: Path) -> AsyncIterator[Services]:
    settings = Settings(
        database_url=database_url,
        redis_url=redis_url,
        data_dir=tmp_path,
        encryption_keys=f"k1:{b64encode(bytes(32)).decode()}",
        shutdown_grace=5,
    )
    async with open_worker(settings) as opened:
        yield opened

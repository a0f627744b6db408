from pathlib import Path

import pytest

from tests.harness.typescript import installed


@pytest.fixture(scope="module")
async def program(npm_package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for programs, with the package."""
    return await installed(npm_package, tmp_path_factory.mktemp("program"))

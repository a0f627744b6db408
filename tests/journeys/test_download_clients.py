"""Programs that people use: curl, wget and aria2 complete interrupted files, or split them, with the right checksum."""

import asyncio
import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.sandbox import files
from tests.harness.caller import Api, ConnectorApi
from tests.harness.sandbox import fault
from tests.harness.up import Running

#: MiB of the file, and bytes after which the application cuts it the first time
NUMBER, CUT = 24, 9_000_000
#: a program's arguments: where the file is, the header that lets it in, the folder and name to save it under
Arguments = Callable[[str, str, Path, str], list[str]]


def curl(url: str, header: str, folder: Path, name: str) -> list[str]:
    return ["curl", "-sS", "--fail", "-C", "-", "-H", header, "-o", str(folder / name), url]


def wget(url: str, header: str, folder: Path, name: str) -> list[str]:
    return ["wget", "-q", "-c", "--tries=1", f"--header={header}", "-O", str(folder / name), url]


def aria2c(url: str, header: str, folder: Path, name: str) -> list[str]:
    return ["aria2c", "-q", "-c", "-x4", "-s4", "-k1M", "--file-allocation=none", "--allow-overwrite=false",
            "--max-tries=1", f"--header={header}", f"--dir={folder}", f"--out={name}", url]  # fmt: skip


def program(arguments: Arguments) -> object:
    name = arguments.__name__
    missing = pytest.mark.skipif(shutil.which(name) is None, reason=f"{name} is not installed")
    return pytest.param(arguments, marks=missing, id=name)


PROGRAMS = [program(curl), program(wget), program(aria2c)]


async def run(arguments: list[str]) -> int:
    process = await asyncio.create_subprocess_exec(*arguments, stdout=asyncio.subprocess.DEVNULL)
    return await asyncio.wait_for(process.wait(), 60)


@pytest.fixture
def authorization(api: Api) -> str:
    return f"Authorization: {api.headers['Authorization']}"


async def resource_of(base_url: str, connector: ConnectorApi) -> str:
    return f"{base_url}{connector.path}/download/attachments?attachment_id={NUMBER}"


async def stored_of(base_url: str, connector: ConnectorApi) -> str:
    """The same file as the result of a job."""
    job = await connector.submit("attachments", "download", {"attachment_id": NUMBER})
    path = f"/api/v1/jobs/{job['id']}/result"
    await connector.api.get(f"{path}?wait=30", headers={"Range": "bytes=0-0"})
    return base_url + path


@pytest.fixture(params=[resource_of, stored_of])
async def url(request: pytest.FixtureRequest, running: Running, support_desk: ConnectorApi) -> str:
    return await request.param(running.base_url, support_desk)


@pytest.mark.parametrize("arguments", PROGRAMS)
async def test_a_file_that_was_cut_is_completed(
    running: Running, support_desk: ConnectorApi, authorization: str, arguments: Arguments, tmp_path: Path
):
    url = await resource_of(running.base_url, support_desk)
    async with fault(running.sandbox_url, path_prefix="/attachments/", truncate_after_bytes=CUT, times=1):
        await run(arguments(url, authorization, tmp_path, "file"))

    status = await run(arguments(url, authorization, tmp_path, "file"))

    assert status == 0
    assert hashlib.sha256((tmp_path / "file").read_bytes()).hexdigest() == files.sha256_of(NUMBER)


@pytest.mark.parametrize("arguments", PROGRAMS)
async def test_a_file_of_which_the_beginning_is_there_is_completed(
    url: str, authorization: str, arguments: Arguments, tmp_path: Path
):
    (tmp_path / "file").write_bytes(b"".join(files.chunks(NUMBER, files.Span(0, CUT))))

    status = await run(arguments(url, authorization, tmp_path, "file"))

    assert status == 0
    assert hashlib.sha256((tmp_path / "file").read_bytes()).hexdigest() == files.sha256_of(NUMBER)


@pytest.mark.parametrize("arguments", PROGRAMS)
async def test_a_file_is_fetched_from_the_beginning(url: str, authorization: str, arguments: Arguments, tmp_path: Path):
    status = await run(arguments(url, authorization, tmp_path, "file"))

    assert status == 0
    assert hashlib.sha256((tmp_path / "file").read_bytes()).hexdigest() == files.sha256_of(NUMBER)

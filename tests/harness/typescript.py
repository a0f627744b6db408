"""Programs in TypeScript, and the npm package of `gateway/client/typescript` as its users get it.

TYPESCRIPT_CLIENT, which `.ci/run` sets, names a folder in which `npm install node@22 openapi-typescript@7.13.0
openapi-fetch@0.17.0 typescript@5 @types/node@22 standardwebhooks@1.0.0 @modelcontextprotocol/client@2.4.0 ai@6 zod@4`
was run.
"""

import asyncio
import os
import shutil
from pathlib import Path

import pytest

NPM = os.environ.get("TYPESCRIPT_CLIENT")
#: a folder with the next version of the AI SDK
AI_SDK_7 = os.environ.get("TYPESCRIPT_AI_7")
#: the source of the package
PACKAGE = Path(__file__).parents[2] / "gateway/client/typescript"
COMPILER = (
    *("tsc", "--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--target", "es2023"),
    "--allowImportingTsExtensions",
)

needs_npm = pytest.mark.skipif(
    NPM is None, reason="TYPESCRIPT_CLIENT names no folder with node 22 and the npm packages"
)


async def run(place: Path, *command: str, **variables: str) -> str:
    """What a program prints; it must succeed."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=place,
        env={**os.environ, **variables},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await asyncio.wait_for(process.communicate(), 120)
    assert process.returncode == 0, (output + errors).decode()[-4000:]
    return output.decode()


async def node(place: Path, program: str, *words: str, **variables: str) -> str:
    """What a program of the packages prints, such as `node` or `tsc`."""
    binaries = Path(NPM or "") / "node_modules/.bin"
    path = f"{binaries}{os.pathsep}{os.environ['PATH']}"
    return await run(place, str(binaries / program), *words, PATH=path, **variables)


def with_packages(place: Path, packages: Path | None = None) -> None:
    """Programs below the folder find the npm packages, or those of another folder."""
    (place / "node_modules").symlink_to((packages or Path(NPM or "")) / "node_modules")


async def packed(place: Path) -> Path:
    """The package, built and packed into the folder by npm."""
    with_packages(place)
    source = place / "source"
    shutil.copytree(PACKAGE, source, ignore=shutil.ignore_patterns("node_modules", "dist"))
    await node(source, "tsc", "--project", "tsconfig.json")
    await run(source, "npm", "pack", "--silent", "--pack-destination", str(place))
    [tarball] = place.glob("*.tgz")
    return tarball


async def installed(tarball: Path, place: Path, *, packages: Path | None = None) -> Path:
    """A folder for programs into which npm has installed the package alone; the npm packages are above it."""
    with_packages(place, packages)
    folder = place / "program"
    folder.mkdir()
    (folder / "package.json").write_text('{"type": "module"}')
    await run(folder, "npm", "install", "--silent", "--offline", "--no-fund", "--no-audit", str(tarball))
    return folder

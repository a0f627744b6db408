"""Configurations that connect agents' hosts to the gateway, for people to paste, and what each host needs. Pure."""

import json
from dataclasses import dataclass
from urllib.parse import urlsplit

from gateway.foundation.hosts import is_loopback

#: the setting that lets hosts register themselves
_SETTING = "GATEWAY_MCP_REGISTRATION=true"


@dataclass(frozen=True, slots=True)
class HostConfiguration:
    """The configuration of one host."""

    name: str
    #: the file or the settings that the text belongs to
    place: str
    #: what the host needs of the gateway, and the next step in the host
    needs: str
    text: str


def host_configurations(base_url: str, *, registers: bool) -> list[HostConfiguration]:
    """A configuration for each common host. They have no secrets, because hosts sign in by OAuth, except over stdio.

    `registers`: whether the gateway lets hosts register themselves.
    """
    url = f"{base_url}/mcp"
    document = "Has a metadata document, which the gateway reads from the internet." + (
        "" if registers else f" Older versions register themselves, for which this gateway needs {_SETTING}."
    )
    itself = (
        "Registers itself, which this gateway allows."
        if registers
        else f"Registers itself, which this gateway refuses: set {_SETTING}, or use the host over stdio."
    )
    public = (
        "Calls the gateway from its vendor's servers, so that the address must be reachable from the internet by https"
    )
    if is_loopback(urlsplit(base_url).hostname or "") or not base_url.startswith("https:"):
        public += "; this gateway's is not"
    return [
        HostConfiguration(
            "Claude Code",
            "In a terminal",
            f"{document} Then sign in with /mcp.",
            f"claude mcp add --transport http gateway {url}",
        ),
        HostConfiguration(
            "Cursor",
            ".cursor/mcp.json",
            f"{itself} Then sign in under Settings, MCP.",
            _json({"mcpServers": {"gateway": {"url": url}}}),
        ),
        HostConfiguration(
            "VS Code",
            ".vscode/mcp.json",
            f"{document} It asks to sign in when the server starts.",
            _json({"servers": {"gateway": {"type": "http", "url": url}}}),
        ),
        HostConfiguration("Claude and Claude Desktop", "Settings, Connectors, Add custom connector", f"{public}.", url),
        HostConfiguration(
            "Codex",
            "~/.codex/config.toml",
            f"{document} Then run codex mcp login gateway.",
            f'[mcp_servers.gateway]\nurl = "{url}"',
        ),
        HostConfiguration(
            "Gemini CLI",
            "~/.gemini/settings.json",
            f"{itself} Then run /mcp auth gateway.",
            _json({"mcpServers": {"gateway": {"httpUrl": url}}}),
        ),
        HostConfiguration(
            "Windsurf",
            "~/.codeium/windsurf/mcp_config.json",
            itself,
            _json({"mcpServers": {"gateway": {"serverUrl": url}}}),
        ),
        HostConfiguration(
            "Any host over stdio",
            "The host's own configuration",
            "Needs pip install agent-connector-gateway where the host runs, and a client of this gateway; no sign-in.",
            _json(
                {
                    "mcpServers": {
                        "gateway": {
                            "command": "gateway",
                            "args": ["mcp"],
                            "env": {
                                "GATEWAY_URL": base_url,
                                "GATEWAY_CLIENT_ID": "your client's id",
                                "GATEWAY_CLIENT_SECRET": "your client's secret",
                            },
                        }
                    }
                }
            ),
        ),
    ]


def _json(document: object) -> str:
    return json.dumps(document, indent=2)

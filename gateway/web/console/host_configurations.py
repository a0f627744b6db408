"""Configurations that connect agents' hosts to the gateway, for people to paste. Pure."""

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HostConfiguration:
    """The configuration of one host."""

    name: str
    #: the file or the settings that the text belongs to
    place: str
    text: str


def host_configurations(base_url: str) -> list[HostConfiguration]:
    """A configuration for each common host. They have no secrets, because hosts sign in by OAuth, except over stdio."""
    url = f"{base_url}/mcp"
    return [
        HostConfiguration("Claude Code", "In a terminal", f"claude mcp add --transport http gateway {url}"),
        HostConfiguration("Cursor", ".cursor/mcp.json", _json({"mcpServers": {"gateway": {"url": url}}})),
        HostConfiguration(
            "VS Code", ".vscode/mcp.json", _json({"servers": {"gateway": {"type": "http", "url": url}}})
        ),
        HostConfiguration("Claude and Claude Desktop", "Settings, Connectors, Add custom connector", url),
        HostConfiguration("Codex", "~/.codex/config.toml", f'[mcp_servers.gateway]\nurl = "{url}"'),
        HostConfiguration(
            "Gemini CLI", "~/.gemini/settings.json", _json({"mcpServers": {"gateway": {"httpUrl": url}}})
        ),
        HostConfiguration(
            "Windsurf", "~/.codeium/windsurf/mcp_config.json", _json({"mcpServers": {"gateway": {"serverUrl": url}}})
        ),
        HostConfiguration(
            "Any host over stdio",
            "Needs pip install agent-connector-gateway, and a client of this gateway",
            _json({
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
            }),
        ),
    ]  # fmt: skip


def _json(document: object) -> str:
    return json.dumps(document, indent=2)

"""Agents: the Model Context Protocol and the gateway's tools."""

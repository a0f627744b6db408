"""Connectors and the credentials behind them, sealed."""

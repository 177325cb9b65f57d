"""The command `agentmem`: chat, import, search, inspect, forget, export and doctor."""

from langchain_agentmem.cli._main import main

__all__ = ["main"]

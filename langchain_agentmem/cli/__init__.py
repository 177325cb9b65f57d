"""The command `agentmem`: chat, import, search, inspect, forget, export, copy, doctor and bench."""

from langchain_agentmem.cli._main import main

__all__ = ["main"]

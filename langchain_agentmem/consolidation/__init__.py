"""Memory written in the background: a durable queue, a graph, and who runs it."""

from langchain_agentmem.consolidation.executors import LocalConsolidator
from langchain_agentmem.consolidation.graph import create_consolidation_graph
from langchain_agentmem.consolidation.nodes import submit_node
from langchain_agentmem.consolidation.queue import MemoryQueue
from langchain_agentmem.consolidation.records import Record
from langchain_agentmem.consolidation.server import ServerConsolidator
from langchain_agentmem.consolidation.tickets import Ticket

__all__ = [
    "LocalConsolidator",
    "MemoryQueue",
    "Record",
    "ServerConsolidator",
    "Ticket",
    "create_consolidation_graph",
    "submit_node",
]

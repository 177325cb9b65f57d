"""The benchmark: any memories over any conversations, measured honestly.

A memory or a data set of your own is one small file; see `examples/own_benchmark.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_agentmem._lazy import lazy_names

if TYPE_CHECKING:
    from langchain_agentmem.evaluation.benchmark import estimate as estimate
    from langchain_agentmem.evaluation.benchmark import make_report as make_report
    from langchain_agentmem.evaluation.data import Dataset as Dataset
    from langchain_agentmem.evaluation.data import Question as Question
    from langchain_agentmem.evaluation.data import Scope as Scope
    from langchain_agentmem.evaluation.data import Turn as Turn
    from langchain_agentmem.evaluation.datasets import conversations as conversations
    from langchain_agentmem.evaluation.datasets import load as load
    from langchain_agentmem.evaluation.growth import measure_growth as measure_growth
    from langchain_agentmem.evaluation.report import to_html as to_html
    from langchain_agentmem.evaluation.report import to_markdown as to_markdown
    from langchain_agentmem.evaluation.runner import Runner as Runner
    from langchain_agentmem.evaluation.systems import Setup as Setup
    from langchain_agentmem.evaluation.systems import System as System
    from langchain_agentmem.evaluation.systems import SystemSpec as SystemSpec
    from langchain_agentmem.evaluation.systems import system as system
    from langchain_agentmem.evaluation.trial import Equipment as Equipment

_HOMES = {
    "Dataset": "data",
    "Equipment": "trial",
    "Question": "data",
    "Runner": "runner",
    "Scope": "data",
    "Setup": "systems",
    "System": "systems",
    "SystemSpec": "systems",
    "Turn": "data",
    "conversations": "datasets",
    "estimate": "benchmark",
    "load": "datasets",
    "make_report": "benchmark",
    "measure_growth": "growth",
    "system": "systems",
    "to_html": "report",
    "to_markdown": "report",
}

__all__ = [
    "Dataset",
    "Equipment",
    "Question",
    "Runner",
    "Scope",
    "Setup",
    "System",
    "SystemSpec",
    "Turn",
    "conversations",
    "estimate",
    "load",
    "make_report",
    "measure_growth",
    "system",
    "to_html",
    "to_markdown",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES, __all__)

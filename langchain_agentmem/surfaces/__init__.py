"""The ways in: agent tools, graph nodes, a whole agent."""

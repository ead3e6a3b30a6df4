"""Graphs over concepts, and learning them from labels."""

from disentwine.causal.constraints import Knowledge
from disentwine.causal.discovery import discover
from disentwine.causal.graph import Graph
from disentwine.causal.notears import discover_notears

__all__ = ["Graph", "Knowledge", "discover", "discover_notears"]

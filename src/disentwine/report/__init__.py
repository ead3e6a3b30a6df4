"""Report of a run: one HTML page with figures and scores."""

from disentwine.report.write import FiguresWhileTraining, write_report

__all__ = ["FiguresWhileTraining", "write_report"]

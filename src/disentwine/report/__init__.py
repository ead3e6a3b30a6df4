"""The page that shows a run."""

from disentwine.report.write import FiguresWhileTraining, write_report

__all__ = ["FiguresWhileTraining", "write_report"]

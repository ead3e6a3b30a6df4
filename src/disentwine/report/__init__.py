"""The page that shows a run."""

from disentwine.report.write import live_figures, write_report

__all__ = ["live_figures", "write_report"]

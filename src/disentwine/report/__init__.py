"""The page that shows a run."""

from disentwine.report.write import figures_while_training, write_report

__all__ = ["figures_while_training", "write_report"]

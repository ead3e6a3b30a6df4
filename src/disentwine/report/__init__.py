"""One page that shows a run, and the numbers on it."""

from disentwine.report.evaluation import Evaluation, evaluate, evaluate_baseline, evaluate_run
from disentwine.report.live import live_figures
from disentwine.report.traversal import traverse
from disentwine.report.write import write_report

__all__ = [
    "Evaluation",
    "evaluate",
    "evaluate_baseline",
    "evaluate_run",
    "live_figures",
    "traverse",
    "write_report",
]

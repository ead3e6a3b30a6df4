"""disentwine evaluate: scores of a run on its test split."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from disentwine.core.score import Score
    from disentwine.evaluation.evaluate import Evaluation, EvaluatorNames
    from disentwine.runs.run import Run

MINUTES = (10, 30, 90)
"""Minutes of training after which the scores of a learning curve are reported."""


def evaluate(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    metrics: Annotated[
        str,
        typer.Option(
            help="Metrics of latents and factors: names separated by commas, 'all' or 'none'. "
            "'log-likelihood' must be named, as in 'all,log-likelihood': it takes seconds to minutes."
        ),
    ] = "all",
    evaluators: Annotated[
        str,
        typer.Option(
            help="Evaluators: names separated by commas, or 'all' for every score that applies, "
            "as in the studies. By default those that take seconds."
        ),
    ] = "",
    samples: Annotated[
        int,
        typer.Option(
            min=1, help="Importance samples per image of the log-likelihood, on up to 1,000 images."
        ),
    ] = 100,
    baselines: Annotated[
        str,
        typer.Option(
            help="Baselines to score as well, such as 'pca,ground-truth', or 'all'. 'pixels' has "
            "thousands of latents; all metrics of it take many minutes."
        ),
    ] = "",
    effects: Annotated[
        bool,
        typer.Option(
            "--effects",
            help="Also measure which concepts change under interventions, with a concept probe that is "
            "trained for it: about half a minute more.",
        ),
    ] = False,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds of the metrics that sample.")] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Evaluate a run on its test split: print its scores and store them in the run folder."""
    from rich.console import Console

    from disentwine.cli._tables import print_comparison, print_scores, print_skipped, scores_title
    from disentwine.evaluation import evaluate_baseline, evaluate_run
    from disentwine.evaluation.disentanglement import read_metrics
    from disentwine.runs.run import load_run

    # All names are checked before anything is measured, which may take long.
    chosen, likelihood = read_metrics(metrics)
    names = read_evaluators(evaluators, effects=effects, likelihood=likelihood)
    compared_with = read_baselines(baselines)
    loaded = load_run(run)
    with Console(stderr=True).status("reading the run") as status:
        found = evaluate_run(
            loaded,
            metrics=chosen,
            evaluators=names,
            seeds=range(seeds),
            on_metric=status.update,
            options={"log-likelihood": {"samples": samples}},
        )
        if names == "all":
            found.scores.extend(training_scores(loaded))
        others = {}
        for name in compared_with:
            status.update(name)
            others[name] = evaluate_baseline(
                name,
                loaded.dataset,
                chosen,
                seeds=range(seeds),
                on_metric=partial(_show, status, name),
            )
    if not as_json:
        print_scores(found.scores, title=scores_title(loaded, found.split))
        print_skipped(found.skipped)
        if others:
            compared = {str(run): found.scores} | {n: o.scores for n, o in others.items()}
            print_comparison(compared, title="compared with baselines that need no network")
    for path in _save(loaded, found, figures=not as_json):
        print(f"figure: {path}")
    if not as_json:
        print(f"to update the report: disentwine report {run}")
    if as_json:
        scores = {name: other.scores for name, other in others.items()}
        print(as_rows(loaded, found.scores, scores))


def _save(run: Run, found: Evaluation, *, figures: bool) -> list[Path]:
    """Save scores, and figures of their matrices, in the run folder; returns the figures' paths."""
    from disentwine.errors import StorageError, warn
    from disentwine.report.sections.latents import save_matrices
    from disentwine.runs.run import keep_scores

    paths: list[Path] = []
    try:
        # Of scores with one name, the first is of the most images.
        keep_scores(
            run, list({score.name: score for score in reversed(found.scores)}.values())[::-1]
        )
        if figures:
            paths += save_matrices(found, run.figures)
    except StorageError as error:  # a run folder of another user may be read-only
        warn(f"the run does not keep all of this: {error}")
    return paths


def as_rows(run: Run, scores: Sequence[Score], others: Mapping[str, Sequence[Score]]) -> str:
    """Scores of a run and of baselines as a JSON list."""
    from disentwine.core.score import to_json

    step = {"step": run.checkpoint.step}
    rows = [{**to_json(score), **step} for score in scores]
    rows += [{"baseline": n, **to_json(score)} for n, other in others.items() for score in other]
    return json.dumps(rows, indent=1, allow_nan=False)


def read_evaluators(words: str, *, effects: bool, likelihood: bool) -> EvaluatorNames:
    """The evaluators that were named; `--effects` and the log-likelihood add theirs.

    >>> read_evaluators("graph, losses", effects=True, likelihood=False)
    ['graph', 'losses', 'effects']
    >>> read_evaluators("all", effects=True, likelihood=False)
    'all'
    """
    from disentwine.evaluation.evaluate import chosen_evaluators

    names = [name for name in map(str.strip, words.split(",")) if name]
    if "all" in names:
        return "all"
    chosen = [evaluator.name for evaluator in chosen_evaluators(names or "default")]
    more = [("effects", effects), ("log-likelihood", likelihood)]
    return list(dict.fromkeys([*chosen, *(name for name, chosen_too in more if chosen_too)]))


def training_scores(run: Run) -> list[Score]:
    """What a study records of the training itself: costs, and scores after some minutes."""
    from disentwine.studies.learning_curves import costs, read_learning_curve, scores_after

    curve = read_learning_curve(run.path)
    last = curve[-1]["scores"] if curve else {}
    names = [name for name, value in last.items() if not isinstance(value, list)]
    return [*costs(curve), *scores_after(curve, MINUTES, names)]


def read_baselines(words: str) -> Sequence[str]:
    """The baselines that were named.

    >>> read_baselines("pca, ground-truth")
    ['pca', 'ground-truth']
    """
    from disentwine.errors import UsageError, did_you_mean
    from disentwine.evaluation.baselines import BASELINES

    names = [name for name in map(str.strip, words.split(",")) if name]
    for name in names:
        if name not in (*BASELINES, "all"):
            raise UsageError(f"there is no baseline '{name}'. {did_you_mean(name, BASELINES)}")
    return BASELINES if "all" in names else names


def _show(status: Any, baseline: str, metric: str) -> None:
    status.update(f"{baseline}: {metric}")

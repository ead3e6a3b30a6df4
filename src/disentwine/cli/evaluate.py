"""disentwine evaluate: the numbers of a run on its test split."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer


def evaluate(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    metrics: Annotated[
        str,
        typer.Option(
            help="Names of metrics with commas between them, or 'all' or 'none'. 'log-likelihood' has to "
            "be named, as in 'all,log-likelihood': it takes seconds to minutes."
        ),
    ] = "all",
    samples: Annotated[
        int, typer.Option(min=1, help="Draws an image of the log-likelihood, up to 1,000 images.")
    ] = 100,
    baselines: Annotated[
        str,
        typer.Option(
            help="Baselines to score as well, such as 'pca,ground-truth', or 'all'. 'pixels' are thousands "
            "of codes, and take many minutes of all metrics."
        ),
    ] = "",
    effects: Annotated[
        bool,
        typer.Option(
            "--effects",
            help="Also measure which concepts interventions move, read back from do-images by a "
            "network that is trained for it: about half a minute more.",
        ),
    ] = False,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds of the metrics that sample.")] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Print every score that applies to a run, measured on its test split; the run keeps them."""
    from rich.console import Console

    from disentwine.cli._tables import print_comparison, print_scores, print_skipped
    from disentwine.cli.train import scores_title
    from disentwine.core.score import to_json
    from disentwine.errors import StorageError, warn
    from disentwine.evaluation import evaluate_baseline, evaluate_run
    from disentwine.evaluation.disentanglement import LIKELIHOOD, read_metrics
    from disentwine.evaluation.likelihood import with_likelihood
    from disentwine.report.sections.latents import save_matrices
    from disentwine.runs.run import keep_scores, load_run

    # All words are read before anything is measured, which may take long.
    chosen, likelihood = read_metrics(metrics)
    compared_with = read_baselines(baselines)
    loaded = load_run(run)
    with Console(stderr=True).status("reading the run") as status:
        found = evaluate_run(
            loaded,
            metrics=chosen,
            seeds=range(seeds),
            effects=effects,
            on_metric=status.update,
        )
        if likelihood:
            status.update(LIKELIHOOD)
            found = with_likelihood(found, loaded, samples=samples)
        others = {}
        for name in compared_with:
            status.update(name)
            others[name] = evaluate_baseline(
                name,
                loaded.dataset,
                chosen,
                seeds=range(seeds),
                on_metric=partial(_tell, status, name),
            )
    pictures: list[Path] = []
    try:
        keep_scores(loaded, found.scores)
        if not as_json:
            pictures += save_matrices(found, loaded.figures)
    except StorageError as error:  # a run that others own can be measured too
        warn(f"the run does not keep all of this: {error}")
    if as_json:
        step = {"step": loaded.checkpoint.step}
        rows = [{**to_json(score), **step} for score in found.scores]
        rows += [{"baseline": n, **to_json(s)} for n, other in others.items() for s in other.scores]
        print(json.dumps(rows, indent=1, allow_nan=False))
        return
    print_scores(found.scores, title=scores_title(loaded, found.split))
    print_skipped(found.skipped)
    if others:
        compared = {str(run): found.scores} | {n: other.scores for n, other in others.items()}
        print_comparison(compared, title="beside representations that need no network")
    for picture in pictures:
        print(f"picture: {picture}")


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


def _tell(status: Any, baseline: str, metric: str) -> None:
    status.update(f"{baseline}: {metric}")

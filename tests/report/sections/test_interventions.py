"""What the report shows of a model that intervenes, and what only when asked for."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from disentwine import figures
from disentwine.core.dataset import Factor
from disentwine.core.score import to_json
from disentwine.data import Arrays, Pendulum, Shapes3D
from disentwine.data.simulation import rerender
from disentwine.evaluation import evaluate_run, held_out
from disentwine.evaluation.probes import train_probe
from disentwine.models import VAE, CausalVAE
from disentwine.report import write_report
from disentwine.report.sections.latents import save_matrices
from disentwine.report.text import display_values, value_labels
from disentwine.runs.fit import fit
from disentwine.runs.run import Run, load_run

SHADOW = (("light_angle", "shadow_length"), ("shadow_length", "shadow_position"))
TRAINING: dict[str, Any] = {
    "steps": 4,
    "log_every": 2,
    "batch_size": 8,
    "threads": 1,
    "progress": False,
}


@pytest.fixture(scope="module")
def pendulum() -> Pendulum:
    data = Pendulum(size=32)
    data.split = {name: indices[:120] for name, indices in data.split.items()}
    return data


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, pendulum: Pendulum) -> Run:
    path = tmp_path_factory.mktemp("runs") / "run"
    torch.manual_seed(0)
    fit(CausalVAE.for_data(pendulum, edges=SHADOW), pendulum, out=path, **TRAINING)
    return load_run(path)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_out, "train_probe", partial(train_probe, steps=2))


def test_graph_and_weights_are_shown_and_effects_when_asked_for(
    run: Run, pendulum: Pendulum
) -> None:
    found = evaluate_run(run, dataset=pendulum, metrics="none")
    html = write_report(run, dataset=pendulum, found=found).read_text(encoding="utf-8")
    assert "<h2>Causal graph</h2>" in html
    assert "4 edges are missing, extra or reversed" in html
    assert "light_angle causes shadow_length; shadow_length causes shadow_position" in html
    assert "<h2>Graph weights during training</h2>" in html
    assert "Effects of interventions" not in html
    assert not (run.figures / "effects.png").exists()
    html = write_report(run, dataset=pendulum, effects=True).read_text(encoding="utf-8")
    assert "<h2>Effects of interventions</h2>" in html
    assert "effect-error:light_angle" in html
    for name in ("graph", "adjacency", "effects"):
        assert (run.figures / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_every_learnt_entry_of_a_is_logged(run: Run) -> None:
    watched = [record for record in run.metrics if record["kind"] == "watched"]
    assert [record["step"] for record in watched] == [0, 2, 4]
    for cause, effect in SHADOW:
        i, j = (run.model.graph.names.index(end) for end in (cause, effect))
        values = [record[f"A[{cause}->{effect}]"] for record in watched]
        assert values[0] == 1
        assert values[-1] == pytest.approx(run.model.graph.weights[i, j])
    assert len(watched[0]) == 2 + len(SHADOW)


def test_effects_are_plain_json_and_a_picture(run: Run, pendulum: Pendulum, tmp_path: Path) -> None:
    named: list[str] = []
    found = evaluate_run(
        run, dataset=pendulum, metrics="none", effects=True, on_metric=named.append
    )
    assert named == ["effects"]
    names = [score.name for score in found.scores if score.name.startswith(("effect-", "off-"))]
    assert names == [
        *(f"effect-error:{name}" for name in pendulum.names),
        "off-target-effect",
        "off-target-effect-causes",
    ]
    leak = found.score("off-target-effect")
    assert leak is not None
    text = json.dumps(to_json(leak), allow_nan=False)
    assert json.loads(text)["details"]["off_target"][0][0] is None
    assert [path.name for path in save_matrices(found, tmp_path)] == ["effects.png"]


def test_a_model_without_concepts_says_that_effects_do_not_apply(
    tmp_path: Path, pendulum: Pendulum
) -> None:
    fit(VAE.for_data(pendulum, latent=2), pendulum, out=tmp_path / "run", **TRAINING)
    found = evaluate_run(load_run(tmp_path / "run"), dataset=pendulum, metrics="none", effects=True)
    assert found.skipped == {"effects": "the model cannot intervene"}
    assert not any(score.name.startswith("effect-") for score in found.scores)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> dict[str, np.ndarray]:
    """The rows of images that figures show, by their labels."""
    rows: dict[str, np.ndarray] = {}
    real = figures.labelled_rows

    def labelled_rows(images: np.ndarray, labels: list[str], *more: Any) -> Any:
        unlike = [
            f"{label} {i}" if label == "ground truth" else label for i, label in enumerate(labels)
        ]
        rows.update(zip(unlike, images, strict=True))
        return real(images, labels, *more)

    monkeypatch.setattr(figures, "labelled_rows", labelled_rows)
    return rows


def test_categories_are_set_to_what_there_is_and_called_by_name(
    tmp_path: Path, drawn: dict[str, np.ndarray]
) -> None:
    scenes = Shapes3D(hues=2, scales=2, orientations=9)
    fit(CausalVAE.for_data(scenes), scenes, out=tmp_path / "run", **TRAINING | {"steps": 2})
    run = load_run(tmp_path / "run")
    found = evaluate_run(run, metrics="none")
    html = write_report(run, found=found).read_text(encoding="utf-8")
    assert "<h2>Counterfactuals</h2>" in html
    assert "Concepts with fewer values leave places empty." in html
    labels = [label for label in drawn if label.startswith("do")]
    assert labels == [
        "do(floor hue)\n0 to 0.5",
        "do(wall hue)\n0 to 0.5",
        "do(object hue)\n0 to 0.5",
        "do(scale)\n0.75 to 1.25",
        "do(shape)\ncube, cylinder, sphere,\ncapsule",
        "do(orientation)\n-30 to 30",
    ]
    index = found.indices[len(found.indices) // 2]
    truth = rerender(scenes, np.repeat(index, 4), {"shape": np.arange(4.0)}).images
    np.testing.assert_array_equal(drawn["ground truth 9"][1:5], truth)
    assert (drawn["ground truth 9"][5:] == 255).all()
    assert (drawn[labels[4]][5:] == 255).all()


def test_categories_of_one_s_own_are_never_between_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    pictures = Arrays(
        images=rng.integers(0, 256, (60, 32, 32, 3), dtype=np.uint8),
        factors=np.stack([np.arange(60) % 10, np.arange(60) % 2, rng.random(60)], axis=1),
        names=("toy", "lit", "size"),
        kinds={"toy": "categorical"},
    )
    fit(CausalVAE.for_data(pictures), pictures, out=tmp_path / "run", **TRAINING | {"steps": 2})
    asked: dict[str, list[float]] = {name: [] for name in pictures.names}
    real = CausalVAE.do

    def do(self: CausalVAE, x: Any, do: Any = None, **values: Any) -> Any:
        for name, value in do.items():
            asked[name] += np.ravel(value).tolist()
        return real(self, x, do, **values)

    monkeypatch.setattr(CausalVAE, "do", do)
    write_report(load_run(tmp_path / "run"), dataset=pictures)
    assert set(asked["toy"]) == {0, 1, 3, 4, 6, 7, 9}
    assert set(asked["lit"]) == {0, 1}
    assert len(set(asked["size"])) == 7


def test_values_that_are_shown_occur_or_are_numbers_among_those_that_do() -> None:
    column = np.array([3.0, 1.0, np.nan, 7.0, 1.0])
    for kind in ("ordinal", "categorical", "binary"):
        assert display_values(Factor("a", kind), column, most=2).tolist() == [1, 7]
    assert display_values(Factor("a"), np.arange(101.0), most=3).tolist() == [2, 50, 98]
    assert value_labels(Factor("a", "binary"), np.array([0.0, 1.0])) == "0 to 1"

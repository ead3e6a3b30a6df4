from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from disentwine.core.dataset import Dataset
from disentwine.data.published.causalvae import FlowAuthors, PendulumAuthors
from disentwine.data.synthetic.pendulum import Pendulum, shadow_length, shadow_position
from disentwine.errors import DataError

real = pytest.mark.skipif(
    not Path(os.environ.get("DISENTWINE_DATA", ""), "causalvae/pendulum_96x96.npz").is_file(),
    reason="needs causalvae/ in the folder that DISENTWINE_DATA names",
)


def check_split(data: Dataset, is_test: int) -> None:
    split = data.split
    assert sorted(np.concatenate(list(split.values()))) == list(range(len(data)))
    assert len(split["test"]) == is_test
    assert len(split["validation"]) == round((len(data) - is_test) / 10)


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    monkeypatch.setenv("DISENTWINE_DATA", str(tmp_path))
    (tmp_path / "causalvae").mkdir()
    n = 20
    common = {"images": np.zeros((n, 96, 96, 3), np.uint8), "is_test": np.arange(n) % 4 == 0}
    return {
        "pendulum": {
            **common,
            "pendulum_angle_i": np.arange(n, dtype=np.int16) - 10,
            "light_j": np.arange(n, dtype=np.int16) + 60,
            "shadow_length": np.full(n, 3.5),
            "shadow_mid": np.full(n, 7.5),
        },
        "flow_noise": {**common, "labels": np.tile(np.int16([15, 4, 31, 9]), (n, 1))},
    }


def save(folder: Path, made: dict[str, dict[str, Any]]) -> None:
    for name, arrays in made.items():
        np.savez(folder / "causalvae" / f"{name}_96x96.npz", **arrays)


def test_labels_are_in_the_units_of_the_drawings(tmp_path: Path, made: Any) -> None:
    save(tmp_path, made)
    pendulum, flow = PendulumAuthors(seed=2), FlowAuthors(seed=2)
    assert pendulum.factors[1].tolist() == pytest.approx([-8.1, 54.9, 3.5, 7.5])
    assert dict(zip(flow.names, flow.factors[0], strict=True)) == pytest.approx(
        {"ball_size": 0.5, "water_height": 4, "hole": 3, "flow": 3.1}
    )
    for data in (pendulum, flow):
        check_split(data, is_test=5)
        assert data.split["test"].tolist() == [0, 4, 8, 12, 16]
        assert data.graph is not None
        assert set(data.graph.nodes) == set(data.names)
    assert set(flow.graph.edges) == {
        ("ball_size", "water_height"),
        ("water_height", "flow"),
        ("hole", "flow"),
    }


def test_the_seed_moves_validation_only(tmp_path: Path, made: Any) -> None:
    save(tmp_path, made)
    one, two = FlowAuthors(seed=1).split, FlowAuthors(seed=2).split
    assert (one["test"] == two["test"]).all()
    assert one["validation"].tolist() != two["validation"].tolist()
    assert one["validation"].tolist() == FlowAuthors(seed=1).split["validation"].tolist()


@pytest.mark.parametrize(
    ("key", "array"),
    [
        ("images", np.zeros((20, 64, 64, 3), np.uint8)),
        ("images", np.zeros((20, 96, 96, 3), np.float32)),
        ("labels", np.zeros((19, 4), np.int16)),
        ("labels", np.full((20, 4), "a")),
        ("is_test", np.zeros((20, 1), bool)),
        ("is_test", np.array(True)),
    ],
)
def test_other_arrays_are_refused(tmp_path: Path, made: Any, key: str, array: Any) -> None:
    made["flow_noise"][key] = array
    save(tmp_path, made)
    with pytest.raises(DataError, match=r"flow_noise_96x96\.npz.*fetch it again"):
        FlowAuthors()


def test_a_missing_file_is_named(tmp_path: Path, made: Any) -> None:
    with pytest.raises(DataError, match=r"pendulum_96x96\.npz.*trustworthyAI"):
        PendulumAuthors()


@real
def test_the_published_pendulum() -> None:
    data = PendulumAuthors()
    assert data.images.shape == (7308, 96, 96, 3)
    check_split(data, is_test=1826)
    assert data.spec == Pendulum.spec
    angles = {name: data.column(name) for name in data.names[:2]}
    np.testing.assert_allclose(data.column("shadow_length"), shadow_length(angles), atol=1e-9)
    np.testing.assert_allclose(data.column("shadow_position"), shadow_position(angles), atol=1e-9)


@real
def test_the_published_flow() -> None:
    data = FlowAuthors()
    assert data.images.shape == (6874, 96, 96, 3)
    check_split(data, is_test=1620)
    low, high = data.factors.min(axis=0), data.factors.max(axis=0)
    np.testing.assert_allclose(low, [5 / 30, 1, 2, 1.7])
    np.testing.assert_allclose(high, [34 / 30, 5, 14 / 3, 6.6])
    # Truncation moves the height by less than one, and so bounds the flow it explains.
    height, hole, flow = (data.column(name) for name in ("water_height", "hole", "flow"))
    assert (flow + 0.1 > np.sqrt(1.96 * height * (hole - 0.5))).all()
    assert (flow < np.sqrt(1.96 * (height + 1) * (hole - 0.5))).all()

"""A model that intervenes in a way of its own, and whose data are not available."""

from typing import Any

import numpy as np
import pytest
import torch

from disentwine.causal.concepts import Concept, ConceptSpec
from disentwine.causal.graph import Graph
from disentwine.core.capabilities import Abducts, Intervenes
from disentwine.core.dataset import Factor
from disentwine.core.model import Batch, Losses, Model
from disentwine.data import Arrays
from disentwine.errors import UsageError
from disentwine.models import VQVAE
from disentwine.serve import explore
from disentwine.serve.images import Uploads, data_url
from disentwine.serve.loaded_run import EncodedImage, LoadedRun, MissingError
from disentwine.testing import small_grid


class Lamp(Model):
    """Its one concept is how bright a picture is; a second follows from it."""

    image_shape = (4, 4, 1)
    concept_names = ("light", "heat")
    concept_spec = ConceptSpec(
        (Concept("light", mean=100.0, std=50.0), Concept("heat", mean=20.0, std=5.0))
    )
    graph = Graph.from_edges(concept_names, [("light", "heat")])

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def loss(self, batch: Batch) -> Losses:
        return Losses({"nothing": self.weight.sum()})

    def represent(self, x: Any) -> Any:
        return self.concepts(x)

    def reconstruct(self, x: Any) -> Any:
        return x

    def concepts(self, x: Any) -> Any:
        return np.array([x.mean(), x.mean() / 5])

    def do(self, x: Any, do: Any = None, **values: Any) -> Any:
        light = (do or {}).get("light", x.mean())
        return np.full_like(x, np.reshape(light, (-1,) + (1,) * (x.ndim - 1)))


@pytest.fixture
def loaded_run() -> LoadedRun:
    return LoadedRun(Lamp(), None, 1)


def test_it_intervenes_without_abducting(loaded_run: LoadedRun) -> None:
    assert isinstance(loaded_run.model, Intervenes)
    assert not isinstance(loaded_run.model, Abducts)
    encoded = EncodedImage(loaded_run.model, np.full((4, 4, 1), 50, np.uint8))
    answer = explore.intervene(loaded_run, encoded, {"light": 150.0})
    assert answer.before == {"light": 50.0, "heat": 10.0}
    assert answer.after == {"light": 150.0, "heat": 30.0}
    assert answer.image == data_url(np.full((4, 4, 1), 150, np.uint8))
    assert answer.affected == ["heat"]
    assert answer.truth is None
    assert answer.outside_range == []
    beyond = explore.intervene(loaded_run, encoded, {"light": 230.0})
    assert beyond.outside_range == ["light"]
    assert explore.intervene(loaded_run, encoded, {"heat": 1.0}).removed_edges == [
        ("light", "heat")
    ]


def test_without_data_only_sent_pictures_can_be_looked_at(loaded_run: LoadedRun) -> None:
    assert explore.thumbnails(loaded_run, 0, 10) == []
    with pytest.raises(MissingError, match="not available"):
        loaded_run.encode("t-0", Uploads().read)
    light = loaded_run.concepts[0]
    assert (light.low, light.high, light.unit) == (0.0, 200.0, "")
    dark = EncodedImage(loaded_run.model, np.zeros((4, 4, 1), np.uint8))
    with pytest.raises(UsageError, match="training range"):
        explore.intervene(loaded_run, dark, {"light": 1e5})


class Switch(Lamp):
    """Its light is one of three, and it remembers so."""

    concept_spec = ConceptSpec(
        (
            Concept("light", "categorical", values=("off", "dim", "bright")),
            Concept("heat", values=(3.0, 40.0)),
        )
    )


def test_what_the_model_remembers_of_its_labels_stands_in_for_the_data() -> None:
    loaded_run = LoadedRun(Switch(), None, 1)
    light, heat = loaded_run.concepts
    assert (light.kind, light.values) == ("categorical", ["off", "dim", "bright"])
    assert (light.low, light.high, light.step) == (0.0, 2.0, 1.0)
    assert (heat.kind, heat.values, heat.low, heat.high) == ("continuous", [], 3.0, 40.0)
    encoded = EncodedImage(loaded_run.model, np.zeros((4, 4, 1), np.uint8))
    assert explore.sweep(loaded_run, encoded, "light", {}, 9).values == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("dataset", ["at hand", "missing"])
@pytest.mark.parametrize("value", [0.5, -1.0, 3.0])
def test_a_number_that_is_no_category_is_refused(dataset: str, value: float) -> None:
    lamps = Arrays(
        images=np.zeros((30, 4, 4, 1), np.uint8),
        factors=np.stack([np.arange(30.0) % 3, np.arange(30.0)], axis=1),
        names=["light", "heat"],
    )
    lamps.spec = (Factor("light", "categorical", values=("off", "dim", "bright")), Factor("heat"))
    loaded_run = LoadedRun(Switch(), lamps if dataset == "at hand" else None, 1)
    encoded = EncodedImage(loaded_run.model, np.zeros((4, 4, 1), np.uint8))
    assert explore.intervene(loaded_run, encoded, {"light": 2.0}).affected == ["heat"]
    with pytest.raises(UsageError, match="one of off, dim, bright, or its number from 0 to 2; got"):
        explore.intervene(loaded_run, encoded, {"light": value})


@pytest.mark.parametrize("dataset", ["at hand", "missing"])
def test_codes_out_of_a_codebook_are_whole_numbers_of_it(dataset: str) -> None:
    grid = small_grid((16, 16, 1))
    model = VQVAE.for_data(grid, codebook_size=8).eval()
    loaded_run = LoadedRun(model, grid if dataset == "at hand" else None, 1)
    encoded = EncodedImage(model, grid.images[0])
    answer = explore.traverse(loaded_run, encoded, {"0": 2.6, "1": -40.0, "2": 99.0})
    assert set(answer.ranges) == {(0.0, 7.0)}
    assert answer.latents[:3] == [3.0, 0.0, 7.0]
    assert answer.latents[3:] == encoded.latents[3:].tolist()

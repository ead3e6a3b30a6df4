"""A model that intervenes in a way of its own, and whose data are not at hand."""

from typing import Any

import numpy as np
import pytest
import torch

from disentwine.causal.graph import Graph
from disentwine.contracts.capabilities import Abducts, Intervenes
from disentwine.contracts.model import Batch, Losses, Model
from disentwine.errors import UsageError
from disentwine.serve import explore
from disentwine.serve.opened import MissingError, Opened, Seen
from disentwine.serve.pictures import data_url
from disentwine.serve.uploads import Uploads


class Lamp(Model):
    """Its one concept is how bright a picture is; a second follows from it."""

    image_shape = (4, 4, 1)
    concept_names = ("light", "heat")
    label_mean, label_scale = (100.0, 20.0), (50.0, 5.0)
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
        return np.full_like(x, (do or {}).get("light", x.mean()))


@pytest.fixture
def opened() -> Opened:
    return Opened(Lamp(), None, 1)


def test_it_intervenes_without_abducting(opened: Opened) -> None:
    assert isinstance(opened.model, Intervenes)
    assert not isinstance(opened.model, Abducts)
    seen = Seen(opened.model, np.full((4, 4, 1), 50, np.uint8))
    answer = explore.intervene(opened, seen, {"light": 150.0})
    assert answer.before == {"light": 50.0, "heat": 10.0}
    assert answer.after == {"light": 150.0, "heat": 30.0}
    assert answer.picture == data_url(np.full((4, 4, 1), 150, np.uint8))
    assert answer.moved == ["heat"]
    assert answer.truth is None
    assert explore.intervene(opened, seen, {"heat": 1.0}).cut == [("light", "heat")]


def test_without_data_only_sent_pictures_can_be_looked_at(opened: Opened) -> None:
    assert explore.thumbnails(opened, 0, 10) == []
    with pytest.raises(MissingError, match="not at hand"):
        opened.look("t-0", Uploads().read)
    light = opened.concepts[0]
    assert (light.low, light.high, light.unit) == (0.0, 200.0, "")
    with pytest.raises(UsageError, match="training range"):
        explore.intervene(opened, Seen(opened.model, np.zeros((4, 4, 1), np.uint8)), {"light": 1e5})

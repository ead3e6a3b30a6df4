"""What each layer of a hierarchy carries."""

from __future__ import annotations

import numpy as np

from disentwine import figures
from disentwine.contracts.capabilities import Layered
from disentwine.report.page import Picture, Section
from disentwine.report.subject import Subject


def layers(subject: Subject) -> Section | None:
    """How much each unit of each layer adds to what the layer above says."""
    model, kl = subject.model, subject.found.unit_kl
    if not isinstance(model, Layered) or kl is None:
        return None
    of = np.array(model.unit_layers)
    figure = figures.layer_activity([kl[of == i] for i in range(1, int(of.max()) + 1)])
    return Section(
        "What each layer carries",
        "The mean KL divergence of every unit's posterior from its prior given the layer above, the "
        "layer next to the image at the bottom, each layer's busiest unit first. A unit without any "
        "adds nothing. Where inference comes down the layers, as a ladder's, a layer's sum is its term "
        "kl_1, kl_2, ... of the loss; where it goes up, the layer above knows of this one, and it is not.",
        Picture(
            "layers",
            "A map of units by layers, darker where a unit carries more, with each layer's total",
            figures.to_png_bytes(figure),
        ),
    )


def shares(subject: Subject, shown: list[int]) -> str:
    """How many of each layer's live units are shown, such as "1 of 1 in layer 2, 3 of 9 in layer 1"."""
    assert isinstance(subject.model, Layered)
    layers = np.array(subject.model.unit_layers)
    counts = [
        f"{(layers[shown] == i).sum()} of {(layers[subject.busiest] == i).sum()} in layer {i}"
        for i in range(int(layers.max()), 0, -1)
    ]
    return ", ".join(counts)

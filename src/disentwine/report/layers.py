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
        "adds nothing.",
        Picture(
            "layers",
            "A map of units by layers, darker where a unit carries more, with each layer's total",
            figures.to_png_bytes(figure),
        ),
    )

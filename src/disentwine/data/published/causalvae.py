"""The published images of CausalVAE, with their labels and split."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from disentwine.core.dataset import Dataset, random_split
from disentwine.core.types import IndexArray
from disentwine.data.files import find_file, load_npz
from disentwine.data.synthetic.flow import Flow
from disentwine.data.synthetic.pendulum import Pendulum
from disentwine.errors import DataError

SOURCE = (
    "https://github.com/huawei-noah/trustworthyAI (research/CausalVAE) as single images, from which this "
    "file is made; 'pendulum' and 'flow' are rendered and need no file"
)
LICENCE = "Apache 2.0; cite M. Yang et al., CausalVAE, 2021"


class PendulumAuthors(Dataset):
    """The 7,308 published Pendulum images; factors, units and graph are those of `Pendulum`.

    Reference: CausalVAE: Disentangled Representation Learning via Neural Structural Causal Models,
    M. Yang et al., 2021.

    Arguments:
        seed: of the choice of 10 % of the published training images for validation.
    """

    about: ClassVar[str] = "Pendulum as CausalVAE's authors published it; 7,308 images"
    graph = Pendulum.graph
    spec = Pendulum.spec

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed
        labels = ("pendulum_angle_i", "light_j", "shadow_length", "shadow_mid")
        arrays = _published("pendulum", {"images": (96, 96, 3), **dict.fromkeys(labels, ())})
        self.images = arrays["images"]
        # The published integers count steps of pi / 200.
        self.factors = np.stack([arrays[label] for label in labels], axis=1) * [0.9, 0.9, 1, 1]
        self.split = _published_split(arrays["is_test"], seed)


class FlowAuthors(Dataset):
    """The 6,874 published Flow images; factors, units and graph are those of `Flow`.

    The published labels are truncated: water height to whole units, flow to tenths. Images of
    different scenes can therefore have equal labels, within the training set and across the
    split; for exact labels and a clean split use `Flow`.

    Reference: CausalVAE: Disentangled Representation Learning via Neural Structural Causal Models,
    M. Yang et al., 2021.

    Arguments:
        seed: of the choice of 10 % of the published training images for validation.
    """

    about: ClassVar[str] = "Flow as CausalVAE's authors published it; 6,874 images, coarse labels"
    graph = Flow.graph
    spec = Flow.spec

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed
        arrays = _published("flow_noise", {"images": (96, 96, 3), "labels": (4,)})
        self.images = arrays["images"]
        radius, water_height, flow, hole = arrays["labels"].T.astype(np.float64)
        self.factors = np.stack([radius / 30, water_height, hole / 3, flow / 10], axis=1)
        self.split = _published_split(arrays["is_test"], seed)


def _published(name: str, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, NDArray[Any]]:
    """The arrays of one file; `shapes` are those of a row. All have equally many rows."""
    file = f"{name}_96x96.npz"
    path = find_file(
        [f"causalvae/{file}", file], dataset="CausalVAE's images", source=SOURCE, licence=LICENCE
    )
    shapes = {**shapes, "is_test": ()}
    arrays = load_npz(path, list(shapes))
    n = len(arrays["is_test"]) if arrays["is_test"].ndim else 0
    for key, shape in shapes.items():
        array = arrays[key]
        kinds = "u" if key == "images" else "biuf"
        if array.shape != (n, *shape) or array.dtype.kind not in kinds:
            raise DataError(
                f"{path}: '{key}' is {array.dtype} of {array.shape}, not numbers of "
                f"{(n, *shape)}; it is damaged or not the published file: fetch it again"
            )
    return arrays


def _published_split(is_test: NDArray[Any], seed: int) -> dict[str, IndexArray]:
    test = is_test.astype(bool)
    rest = np.flatnonzero(~test).astype(np.int64)
    parts = random_split(len(rest), test=0, validation=round(len(rest) / 10), seed=seed)
    return {
        "train": rest[parts["train"]],
        "validation": rest[parts["validation"]],
        "test": np.flatnonzero(test).astype(np.int64),
    }

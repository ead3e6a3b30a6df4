"""DIP-VAE's Table 2: yes-or-no attributes of pictures, told by attribute vectors in codes."""

from __future__ import annotations

from disentwine.data.files import existing_files
from disentwine.data.folder import DEFAULT_TABLE
from disentwine.studies.disentangling import NETWORK, STEPS
from disentwine.studies.study import Published
from disentwine.studies.tables import Column
from disentwine.studies.trial import Trial

OWN_DATA = "attributes"
"""A folder in `DISENTWINE_DATA` with the user's own pictures, and a table of their attributes."""

CELEBA = ("data.name=celeba", "data.limit=50000")

ATTRIBUTES = {
    "Arched_Eyebrows": (0.718, 0.716, 0.716, 0.716, 0.737),
    "Attractive": (0.730, 0.726, 0.726, 0.717, 0.732),
    "Bangs": (0.898, 0.906, 0.900, 0.900, 0.909),
    "Black_Hair": (0.780, 0.793, 0.766, 0.760, 0.806),
    "Blond_Hair": (0.889, 0.891, 0.889, 0.872, 0.919),
    "Heavy_Makeup": (0.796, 0.793, 0.778, 0.762, 0.815),
    "Male": (0.839, 0.835, 0.823, 0.805, 0.859),
    "Mouth_Slightly_Open": (0.763, 0.761, 0.757, 0.731, 0.759),
    "No_Beard": (0.873, 0.869, 0.853, 0.853, 0.853),
    "Wavy_Hair": (0.702, 0.678, 0.668, 0.637, 0.715),
    "Wearing_Hat": (0.958, 0.959, 0.958, 0.958, 0.962),
    "Wearing_Lipstick": (0.830, 0.824, 0.806, 0.796, 0.847),
}
ROWS = (
    ("vae", ""),
    ("beta-vae", "beta 2"),
    ("beta-vae", "beta 4"),
    ("beta-vae", "beta 8"),
    ("dip-vae-i", "lambda 2"),
)
"""Rows of Table 2, which are the columns of `ATTRIBUTES`."""

IN_TABLE_2: Published = {
    (system, "celeba", f"attribute-accuracy:{name}", note): values[i]
    for name, values in ATTRIBUTES.items()
    for i, (system, note) in enumerate(ROWS)
}
"""Variational Inference of Disentangled Latent Concepts, A. Kumar et al., 2018, table 2."""

ATTRIBUTE_COLUMNS = [
    Column("all", "attribute-accuracy", form=".1%"),
    *(
        Column(name.replace("_", " "), f"attribute-accuracy:{name}", form=".1%")
        for name in ATTRIBUTES
    ),
]


def attribute_trials(seed: int, *, stage: int) -> list[Trial]:
    """The table's rows on CelebA and on the user's own pictures, as far as they are at hand."""
    own = existing_files([f"{OWN_DATA}/{DEFAULT_TABLE}"])
    data = {OWN_DATA: ("data.name=folder", f"data.path={own[0].parent}")} if own else {}
    if _attribute_row(*ROWS[0], "celeba", seed, CELEBA, stage=stage).has_data():
        data["celeba"] = CELEBA
    return [
        _attribute_row(*row, name, seed, data[name], stage=stage) for name in data for row in ROWS
    ]


def _attribute_row(
    system: str, note: str, data: str, seed: int, options: tuple[str, ...], *, stage: int
) -> Trial:
    value = note.rpartition(" ")[2]
    weights = {
        "vae": (),
        "beta-vae": (f"model.beta={value}",),
        "dip-vae-i": (f"model.lambda_od={value}", f"model.lambda_d={50 * int(value or 0)}"),
    }[system]
    overrides = (
        *options,
        f"model.name={system}",
        "model.latent=32",
        *NETWORK,
        *weights,
        "training.batch_size=100",
        f"training.steps={STEPS}",
        f"training.save_every={STEPS // 5}",
    )
    return Trial(system, data, seed, "beta-vae-shapes2d", overrides, note=note, stage=stage)

"""What a reader of the page of the study `causalvae` must know."""

from __future__ import annotations

SNAPPED = "flow-snapped"

REMARKS = (
    "*How to read it.* Error over that of reconstructions says what an intervention adds, and not how good "
    "a picture is: a model that paints badly has a low one. Look at the share of doing nothing, and at the "
    "error itself, beside it. *Read back*: by a network trained on true images, in standard deviations of "
    "the labels; pictures are of the first seed.",
    "*Labels tied closely*: codes are drawn to their labels with standard deviation .1; the paper's own "
    "prior, with 1, ties them by a few nats where pixels weigh hundreds. *Concepts read by least squares*: "
    "the weights of the layered model, whose reading of an image is refined until it is painted best. "
    "*Graphs* are learnt from the labels by `disentwine.causal.discover` before the training, by all "
    "systems that learn one; what the paper's own pre-training finds is among the pictures.",
    "*Updates*: 600 of the unsupervised rows, 1,000 to 2,200 of the others, so that all of them together "
    "take less than an hour on two cores; *causal-gan*, which is given the graph, still paints speckles "
    "after its 1,500. The unsupervised rows are above the published ones and plain causal-vae is below; "
    "how those were trained, and on how many images they were scored, is not published closely enough to "
    "say why.",
)

DATA_REMARKS = {
    SNAPPED: "*flow-snapped*: the scenes of flow with water and hole ending at whole pixels "
    "(`data.snapped=true`), as in their authors' images: the water itself then does not show how high it is "
    "between two of them (`benchmarks/support.py` measures what this costs who sees it alone; the jet tells "
    "more), and nine holes hardly tell where between them the wall's gap jumps by a pixel.",
    "pendulum-authors": "*pendulum-authors*: the authors' own images, by one seed, with fewer updates; no "
    "simulator draws them.",
    "flow-authors": "*flow-authors*: likewise; its labels are cut off to whole numbers, from which the "
    "graph suffers.",
}

DRAWINGS = (
    "*Drawings* show every length exactly, also between two pixels (`data.snapped=false`). A page of this "
    "study without this line is of drawings at whole pixels (`data.snapped=true`), and what it says of "
    "models in layers is from before opacity rose evenly and mechanisms were fitted by the likelihood of "
    "their noise: its numbers do not compare with these."
)
"""For the studies whose pages were made before the defaults changed, so that the two are not mixed up."""

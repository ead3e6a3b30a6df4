"""What a reader of the page of the study `ctvae` must know."""

from __future__ import annotations

REMARKS = (
    "*Which action was it.* Pairs are of test images, one step of one factor apart. *Siamese "
    "network*: it learns nothing but to tell actions, of both pictures at once. *Commonest action*:"
    " always the same answer. *Of unseen pictures*: pairs of which training saw no picture that "
    "looks exactly the same.",
    "*Images after an action.* Squared errors of a pixel against the real image after the action; "
    "*over reconstruction* is what the action adds to what codes lose, *share of doing nothing* is "
    "beside the error of the unchanged image. *Five actions over one* is the error after the same "
    "action five times, back where it leads no further, over that after one. *Others moved*: "
    "factors that were not acted on, read back from the model's images by a network that knows real"
    " ones, in standard deviations of the factor; *rebuilt only* is what it sees move in images "
    "that are only encoded and painted. *Own factor's error* is read likewise.",
    "*Variants* are of one data set and one seed, with the recipe's losses and updates. *The "
    "paper's options*: sampled edges, codebooks by gradient, attention over all nodes, every action"
    " tried for every pair. *Joint*: the autoencoder learns from pairs too. *Latent actions*: "
    "nobody names actions while they are learnt, validation pairs do afterwards. *Single actions*: "
    "without rows of actions. Pictures are of one seed.",
)

DATA_REMARKS = {
    "dsprites-rerender": (
        "*dsprites-rerender*: the 737,280 scenes of dSprites drawn anew, not their authors' file."
    ),
    "shapes3d": (
        "*shapes3d*: our own drawing of the factors of Shapes3D, so that no published number stands"
        " beside it."
    ),
    "sprites-lpc": (
        "*sprites-lpc* has the nine factors and 18 actions of the paper's Sprites, with four "
        "variants of each layer; *sprites-reed* are the pictures that the paper cites, with ten "
        "factors."
    ),
    "cars3d": (
        "*cars3d*: the paper's pairs are mostly of which car it is, ours of all three factors "
        "alike; in the last column ours are weighed as theirs."
    ),
}

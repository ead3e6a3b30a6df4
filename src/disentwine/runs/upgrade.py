"""Reading of run folders of format 1: tables of renamed keys, arguments and tensors."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

FORMAT = 2
"""Format of new checkpoints. Older ones are upgraded when they are read."""

Build = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True)
class Rule:
    """One or several old keys that become one new key.

    A rule applies where at least one of its old keys is present, so a current mapping stays as it is.

    Arguments:
        old: the old keys; a dot leads into a group, as in "weights.l_x".
        new: the new key; groups on the way to it are created. An empty text removes the old keys.
        of: patterns of names of models or data sets that have these keys.
        build: makes the new value from the old values that are present, by old key; by default the
            value of the only old key is kept.

    >>> rule = Rule(("length", "start"), "rollout", build=lambda found: {"n": found["length"]})
    >>> upgrade_mapping({"length": 3, "width": 8}, [rule])
    {'width': 8, 'rollout': {'n': 3}}
    """

    old: tuple[str, ...]
    new: str
    of: tuple[str, ...] = ("*",)
    build: Build | None = None


def renamed(old: str, new: str, *of: str, values: Mapping[str, Any] | None = None) -> Rule:
    """A rule for a key that has another name, place or set of values.

    >>> upgrade_mapping({"mode": "fast"}, [renamed("mode", "speed.kind", values={"fast": "quick"})])
    {'speed': {'kind': 'quick'}}
    """
    table = dict(values or {})

    def build(found: dict[str, Any]) -> Any:
        value = found[old]
        return table.get(value, value) if isinstance(value, str) else value

    return Rule((old,), new, of or ("*",), build)


def _contrast(found: dict[str, Any]) -> Any:
    """The options of the contrast, or none where all actions are compared for all pairs."""
    given = {"negatives": found.get("rivals"), "fraction": found.get("compared", 1)}
    return None if given == {"negatives": None, "fraction": 1} else given


def _rollout(found: dict[str, Any]) -> Any:
    """The options of rollouts, or none where training is single-step."""
    names = {"repeats": "length", "repeats_from": "from_step", "repeats_weight": "weight"}
    given = {new: found.get(old) for old, new in names.items() if found.get(old) is not None}
    return given or None


def _quantizer(group: str, *of: str) -> tuple[Rule, ...]:
    """Rules for the options of vector-quantized autoencoders, which move into a group of options."""
    keys = {
        "codebooks": "num_codebooks",
        "codes": "codebook_size",
        "dimensions": "code_dim",
        "reduction": "downsampling",
        "width": "channels",
        "beta": "commitment_weight",
        "codebook_training": "codebook_update",
    }
    return tuple(renamed(old, group + new, *of) for old, new in keys.items())


QUANTIZED: tuple[Rule, ...] = (
    *_quantizer("", "vq-vae", "mcq-vae"),
    *_quantizer("autoencoder.", "ct-vae"),
    renamed("likelihood", "autoencoder.likelihood", "ct-vae"),
    renamed("layer_width", "transition.node_dim", "ct-vae"),
    renamed("messages", "transition.message_passing", "ct-vae", values={"neighbours": "grid"}),
    renamed("heads", "transition.heads", "ct-vae"),
    renamed("rounds", "transition.num_layers", "ct-vae"),
    renamed("hidden", "transition.edge_hidden", "ct-vae"),
    renamed("activation", "transition.activation", "ct-vae"),
    renamed("edges", "transition.edges", "ct-vae"),
    renamed("pretraining", "pretrain_steps", "ct-vae"),
    renamed("labels", "action_labels", "ct-vae"),
    renamed("two_way", "bidirectional", "ct-vae"),
    renamed(
        "outcome",
        "readout",
        "ct-vae",
        values={"likeliest": "argmax", "expected": "expectation"},
    ),
    Rule(("rivals", "compared"), "contrast", ("ct-vae",), _contrast),
    Rule(("repeats", "repeats_from", "repeats_weight"), "rollout", ("ct-vae",), _rollout),
)
"""Rules for VQ-VAE, MCQ-VAE and CT-VAE, whose options are in groups."""

RECIPE_KEYS: dict[str, tuple[Rule, ...]] = {
    "data": (
        renamed("snapped", "pixel_snapping", "pendulum", "flow"),
        renamed("labelled", "labelled_fraction"),
        renamed("actions", "transitions"),
        renamed("transitions.held", "transitions.fixed"),
    ),
    "model": (
        renamed("opponent_units", "discriminator_units"),
        renamed("opponent_learning_rate", "discriminator_learning_rate"),
        renamed("tightness", "label_std"),
        renamed("label_deviation", "label_std"),
        renamed("label_share", "teacher_forcing"),
        renamed("show_roots", "decode_roots"),
        *QUANTIZED,
        renamed("abduction", "abduction", values={"network": "encoder"}),
        renamed("alpha", "graph_loss.acyclicity", "causal-vae"),
        renamed("beta", "graph_loss.l_u", "causal-vae"),
        renamed("gamma", "graph_loss.l_m", "causal-vae"),
        renamed("gamma_1", "graph_loss.l_u", "causal-wae"),
        renamed("gamma_2", "graph_loss.acyclicity", "causal-wae"),
        renamed("gamma_3", "graph_loss.l_m", "causal-wae"),
    ),
    "training": (
        renamed("revive", "reset_inactive_latents"),
        renamed("start", "init_from"),
        renamed("averaged", "weight_averaging"),
    ),
}
"""Rules for each section of a recipe, in the order in which they apply."""


def _concept_spec(found: dict[str, Any]) -> dict[str, Any]:
    """The concepts of a causal model, whose kinds and units were not stored."""
    names = found["concept_names"]
    values = found.get("label_values") or [[]] * len(names)
    columns = zip(names, found["label_mean"], found["label_scale"], values, strict=True)
    return {
        "concepts": [
            {
                "name": name,
                "kind": "categorical" if any(isinstance(v, str) for v in some) else "continuous",
                "mean": mean,
                "std": std,
                "values": some,
            }
            for name, mean, std, some in columns
        ]
    }


ARGUMENTS: tuple[Rule, ...] = (
    Rule(
        ("concept_names", "label_mean", "label_scale", "label_values"),
        "concept_spec",
        build=_concept_spec,
    ),
    renamed("learnt_graph", "graph"),
    renamed("groups", "composition.concept_groups"),
    renamed("boxes", "composition.group_boxes"),
    renamed("levels", "composition.discrete_values"),
)
"""Rules for the constructor arguments that the data set decides (`fixed_by_data` of a checkpoint)."""

Patterns = tuple[tuple[str, str], ...]
"""Pairs of a regular expression and its replacement, applied in turn to a whole name."""

TENSORS: Patterns = (
    (r"^opponent\.", "discriminator."),
    (r"^front\.", "stem."),
    (r"^autoencoder\.", "mcq_vae."),
    (r"^layer\.network\.rounds\.", "layer.network.layers."),
    (r"^decoder\.painters\.", "decoder.components."),
    (r"^decoder\.regions$", "decoder.group_masks"),
)
"""Names of a model's tensors."""

TRAINING_TENSORS: Patterns = ((r"^opponent_adam\.", "discriminator_adam."),)
"""Names of the optimizers' tensors; the model's own beside an average are renamed as `TENSORS`."""

STATE_KEYS: tuple[Rule, ...] = (renamed("opponent_optimiser", "discriminator_optimiser"),)
"""Rules for the JSON state of a checkpoint."""

LOGGED: Patterns = ((r"^opponent_", "discriminator_"), (r"^l_later$", "l_rollout"))
"""Names of loss terms and other logged numbers."""

SCORE_NAMES: Patterns = (
    (r"^action-leak", "off-target-change"),
    (r"^repeated-ratio$", "rollout-ratio"),
    (r"^effect-leak\b", "off-target-effect"),
)
"""Names of scores in `evaluation.json` and `scores.json`."""

OWN = "weights."
"""Prefix of a model's own weights in a checkpoint that keeps their average."""


def upgrade_recipe(sections: Mapping[str, Any]) -> dict[str, Any]:
    """The sections of a recipe with today's keys; a current recipe stays as it is.

    >>> upgrade_recipe({"data": "flow", "model": {"name": "causal-vae", "label_deviation": 0.1}})
    {'data': 'flow', 'model': {'name': 'causal-vae', 'label_std': 0.1}}
    """
    return {
        label: upgrade_mapping(section, RECIPE_KEYS.get(label, ()), name=f"{section.get('name')}")
        if isinstance(section, Mapping)
        else section
        for label, section in sections.items()
    }


def upgrade_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What the data set decided about a model, under today's names."""
    return upgrade_mapping(arguments, ARGUMENTS)


def upgrade_state(state: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON state of a checkpoint of format 1, as one of today's format."""
    state = upgrade_mapping(state, STATE_KEYS)
    state["format"] = FORMAT
    if isinstance(state.get("sums"), Mapping):
        state["sums"] = rename_all(state["sums"], LOGGED)
    if isinstance(state.get("fixed_by_data"), Mapping):
        state["fixed_by_data"] = upgrade_arguments(state["fixed_by_data"])
    return state


def upgrade_training_tensors(tensors: Mapping[str, Any]) -> dict[str, Any]:
    """The tensors of a checkpoint's training file, under today's names."""
    return {
        OWN + new_name(name.removeprefix(OWN), TENSORS)
        if name.startswith(OWN)
        else new_name(name, TRAINING_TENSORS): value
        for name, value in tensors.items()
    }


def rename_all(values: Mapping[str, Any], patterns: Patterns) -> dict[str, Any]:
    """The same values under today's names, in the same order.

    >>> rename_all({"loss": 1.0, "opponent_loss": 2.0}, LOGGED)
    {'loss': 1.0, 'discriminator_loss': 2.0}
    """
    return {new_name(name, patterns): value for name, value in values.items()}


def new_name(name: str, patterns: Patterns) -> str:
    """Today's name of a tensor, a logged number or a score."""
    for pattern, replacement in patterns:
        name = re.sub(pattern, replacement, name)
    return name


def upgrade_mapping(
    values: Mapping[str, Any], rules: Sequence[Rule], *, name: str = ""
) -> dict[str, Any]:
    """A copy of nested values after all rules in turn.

    Arguments:
        values: keys and values as they were written.
        rules: those that may apply.
        name: of the model or data set whose options these are.
    """
    upgraded = deepcopy(dict(values))
    for rule in rules:
        if not any(fnmatchcase(name, pattern) for pattern in rule.of):
            continue
        found = {old: _take(upgraded, old) for old in rule.old if _has(upgraded, old)}
        if found and rule.new:
            value = rule.build(found) if rule.build else next(iter(found.values()))
            _put(upgraded, rule.new, value)
    return upgraded


def _has(values: Mapping[str, Any], path: str) -> bool:
    head, dot, rest = path.partition(".")
    if not dot:
        return head in values
    return isinstance(values.get(head), Mapping) and _has(values[head], rest)


def _take(values: dict[str, Any], path: str) -> Any:
    """Remove the value at a path, and groups that it leaves empty."""
    head, dot, rest = path.partition(".")
    if not dot:
        return values.pop(head)
    value = _take(values[head], rest)
    if not values[head]:
        del values[head]
    return value


def _put(values: dict[str, Any], path: str, value: Any) -> None:
    head, dot, rest = path.partition(".")
    if not dot:
        values[head] = value
        return
    group = values.setdefault(head, {})
    if not isinstance(group, dict):
        group = values[head] = {}
    _put(group, rest, value)

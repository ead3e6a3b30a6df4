"""Record what every model learns, to the bit, and compare two such records.

    python tools/golden.py record OUT.json
    python tools/golden.py compare OLD.json NEW.json [--renames FILE.json]

A case is a model with some options. Recorded are digests of its weights at initialisation and after
a short training, of the optimizer's state and of its answers afterwards, and the logged metrics.
Digests hold on one machine only: another processor, or another version of torch, rounds otherwise.
`--renames` is JSON: {"models": {old: new}, "tensors": [[regex, replacement], ...], "metrics": [...],
"recipes": [...]}, applied to the names of OLD, of recipes to the text; "recipes": null skips those.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
import yaml
from safetensors.torch import load_file
from typer.main import get_command
from typer.testing import CliRunner


def first_of(*places: str) -> Any:
    """The first of some places, "module:attribute", that this version of the package has."""
    for module, _, name in (place.partition(":") for place in places):
        try:
            return getattr(import_module(f"disentwine.{module}"), name)
        except (ImportError, AttributeError):
            continue
    raise ImportError(f"none of {', '.join(places)} exists")


# All that names the package's API stands from here to CASES: new places first, then old ones.
MODELS, SMALL_GRID = first_of("models:MODELS"), first_of("testing:small_grid")
FIT = first_of("runs.fit:fit", "training.fit:fit")
FIXED_NOISE = first_of("core.random:fixed_noise", "training.trainer:fixed_noise")
READ_RECIPE = first_of("runs.recipe:read_recipe", "training.recipe:read_recipe")
UPGRADE = first_of("runs.upgrade:upgrade_recipe")
READY_RECIPES = first_of("runs.recipe:ready_recipes", "training.recipe:ready_recipes")
ARRAYS, PENDULUM = first_of("data:Arrays"), first_of("data:Pendulum")
COMMAND, CREATE_APP = first_of("cli:app"), first_of("serve.app:create_app")
CHECKPOINTS, METRICS = "checkpoints/step-*", "metrics.jsonl"
IN_CHECKPOINTS = {"last": "weights.safetensors", "optimizer": "training.safetensors"}
RENAMED_MODELS: dict[str, str] = {}  # of those in CASES, old name to new name


def translate(options: dict[str, Any], of: str) -> dict[str, Any]:
    """Options under today's names: of a model, by its old name, or of "fit"."""
    section, name = ("training", {}) if of == "fit" else ("model", {"name": of})
    upgraded = UPGRADE({section: options | name})[section]
    return {key: value for key, value in upgraded.items() if key != "name"}


ANSWERS: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "represent": ("represent", lambda model, x: model.represent(x)),
    "reconstruct": ("reconstruct", lambda model, x: model.reconstruct(x)),
    "decode": ("decode", lambda model, x: model.decode(model.represent(x))),
    "sample": ("sample", lambda model, x: model.sample(2)),
    "do": ("do", lambda model, x: model.do(x, {model.concept_names[0]: 0.3})),
    "apply": ("retrieve", lambda model, x: model.apply(x, model.actions[0], times=2)),
    "retrieve": ("retrieve", lambda model, x: model.retrieve(x[:2], x[2:])),
    "log_weights": ("log_weights", lambda model, x: model.log_weights(x, samples=3)),
}
"""What a model is asked after training: the method it must have, and the question."""

TRAINING = yaml.safe_load(
    "{steps: 13, batch_size: 8, save_every: 13, log_every: 1, threads: 1, device: cpu, seed: 0}"
)
CASES = yaml.safe_load("""
vae: [{}, {}, {network: normed}, {network: standard}, {network: mlp}, {likelihood: gaussian},
  {warm_up_steps: 5, latent: 3}, {fit: {averaged: 4, save_every: 4}},
  {fit: {weight_decay: 0.1, clip_norm: 1.0, final_learning_rate: 0.0001}},
  {fit: {start: vae-0, precision: 64-true}}, {fit: {patience: 1, save_every: 2, learning_rate: 0.02}}]
beta-vae: [{}, {}, {capacity: 5.0, warm_up_steps: 5}, {start_beta: 0.5, warm_up_steps: 5},
  {fit: {start: beta-vae-0, revive: 2}}, {fit: {start: beta-vae-0, revive: true}}]
dip-vae-i: [{}, {}, {lambda_od: 3.0, lambda_d: 7.0}, {start_beta: 2.0, warm_up_steps: 5}]
dip-vae-ii: [{}, {}, {lambda_3: 200.0}, {start_beta: 2.0, warm_up_steps: 5}]
factor-vae: [{}, {}, {gamma: 5.0, opponent_units: 16}, {opponent_learning_rate: 0.01},
  {fit: {final_learning_rate: 0.0001, averaged: 4, weight_decay: 0.1, clip_norm: 1.0}}]
beta-tcvae: [{}, {}, {estimator: weighted, alpha: 0.5, gamma: 2.0}]
wae-mmd: [{}, {}, {lambda_mmd: 3.0, network: normed}]
wae-gan: [{}, {}, {lambda_gan: 3.0, opponent_learning_rate: 0.002, opponent_units: 16}]
infogan: [{}, {}, {classes: 3, opponent_learning_rate: 0.01},
  {noise: 4, information_weight: 2.0, slope_weight: 0.1}]
dc-ign: [{data: grid}, {}, {dimensions: 2, invariance: 0.1}]
hierarchical-vae: [&layers {layers: [4, 3], hidden: [12, 8]}, {}, {batch_norm: true, depth: 1},
  {importance_samples: 3, importance_from: 6}]
ladder-vae: [*layers, {}, {batch_norm: false}, {importance_samples: 3, warm_up_steps: 5}]
causal-vae: [{}, {}, {edges: &chain [[cause, effect], [effect, outcome]]}, {edges: []},
  {data: pendulum}, {data: pendulum, discovery: least-squares}, {data: pendulum, knowledge:
  {required: [[pendulum_angle, shadow_length]], forbidden: [[light_angle, shadow_length]]}},
  {edges: *chain, label_dropout: 0.0, dimensions: 2, label_deviation: 0.5}]
causal-vae/layered: [{}, {}, {edges: *chain, tightness: 0.01}, {data: pendulum},
  {edges: *chain, abduction: least-squares},
  {data: pendulum, edges: &shadow [[pendulum_angle, shadow_length]], label_share: 0.5}]
causal-vae-unsup: [{}, {}, {concept_count: 7, dimensions: 1, alpha: 2.0}]
condition-vae: [{}, {}, {dimensions: 1, label_dropout: 0.0}, {label_deviation: 0.5}]
causal-wae: [{}, {}, {edges: *chain}, {edges: *chain, divergence: gan, show_roots: false},
  {edges: *chain, lambda_u: 3.0, gamma_1: 2.0, gamma_2: 3.0, gamma_3: 4.0}]
causal-wae/layered: [{}, {}, {data: pendulum, edges: *shadow},
  {edges: *chain, divergence: gan, opponent_units: 16}]
vq-vae: [&codes {codes: 8, dimensions: 4, width: 8}, {}, {codebook_training: ema},
  {reduction: 4, likelihood: gaussian}]
mcq-vae: [*codes, {}, {codebook_training: ema}, {codebooks: 4, beta: 0.5}]
ct-vae: [{data: grid, <<: *codes, layer_width: 8, hidden: 4, pretraining: 6}, {},
  {joint: true, two_way: true}, {labels: latent}, {labels: latent, joint: true},
  {rivals: 2, compared: 0.5}, {repeats: 3, repeats_from: 9, repeats_weight: 0.5},
  {repeats: 2, joint: true}, {repeats: 2, rivals: 1, pretraining: 0}, {heads: 2, hidden: 3},
  {messages: neighbours, rounds: 2}, {activation: sine, outcome: expected}, {edges: expected},
  {codebook_training: ema, joint: true, reduction: 4}, {fit: {averaged: 4, save_every: 4}},
  {weights: {l_x: 0.5, l_id_y: 0.3, l_a: 2.0, kl: 0.01, l_dep: 3.0}}]
causal-gan: [{}, {}, {edges: *chain}, {edges: [], noise: 3, label_weight: 2.0, slope_weight: 0.1}]
""")
"""Options of each model under old names: first what all its cases have, then those of each case.
`fit` are those of the training, `start` an earlier case of them; `data` one of `datasets()`."""


def datasets() -> dict[str, Any]:
    """Random pictures that fix all a model takes from data, a grid of actions, some pendulums."""
    rng, drawn = np.random.default_rng(0), PENDULUM(size=32)
    images = rng.integers(0, 256, (60, 16, 16, 1), dtype=np.uint8)
    names, edges = ("cause", "effect", "outcome", "other"), [("cause", "effect")]
    some = {"images": drawn.images[::12], "factors": drawn.factors[::12], "names": drawn.names}
    noise = ARRAYS(images=images, factors=rng.normal(size=(60, 4)), names=names, edges=edges)
    return {"noise": noise, "grid": SMALL_GRID((16, 16, 1)), "pendulum": ARRAYS(**some)}


def digests(tensors: Mapping[str, torch.Tensor]) -> dict[str, list[Any]]:
    """Type, shape and SHA-256 of the bytes of every tensor."""
    arrays = {name: tensor.contiguous().numpy() for name, tensor in tensors.items()}
    return {
        name: [str(array.dtype), [*array.shape], hashlib.sha256(array.tobytes()).hexdigest()]
        for name, array in arrays.items()
    }


def record_case(name: str, case: dict[str, Any], known: Any, out: Path) -> dict[str, Any]:
    """Build and train one model in the folder `out`, beside earlier ones; digest what came of it."""
    options = {key: value for key, value in case.items() if key not in ("fit", "data")}
    dataset, training = known[case.get("data", "noise")], TRAINING | case.get("fit", {})
    if "start" in training:
        training["start"] = str(out.with_name(training["start"]))
    with FIXED_NOISE(0):
        cls = MODELS[RENAMED_MODELS.get(name, name)]
        model = cls.for_data(dataset, **translate(options, of=name))
    found: dict[str, Any] = {"initial": digests(model.state_dict())}
    FIT(model, dataset, out=out, progress=False, **translate(training, of="fit"))
    last = max(out.glob(CHECKPOINTS))
    found["best"] = digests(model.state_dict())
    found |= {part: digests(load_file(last / file)) for part, file in IN_CHECKPOINTS.items()}
    lines = (out / METRICS).read_text().splitlines()
    found["metrics"] = {f"line {n}": json.loads(line) for n, line in enumerate(lines)}
    x = torch.from_numpy(dataset.images[dataset.split["test"][:4]]).permute(0, 3, 1, 2) / 255
    x = x.to(next(model.parameters()).dtype)
    with FIXED_NOISE(0), torch.no_grad():
        asked = {what: ask for what, (needed, ask) in ANSWERS.items() if hasattr(model, needed)}
        found["answers"] = digests({n: torch.as_tensor(ask(model, x)) for n, ask in asked.items()})
    return found


def texts() -> dict[str, Any]:
    """Help of the command and paths of the server: for a reader, not compared."""
    shell, verbs = CliRunner(env={"COLUMNS": "100"}), getattr(get_command(COMMAND), "commands", ())
    helps = {v: shell.invoke(COMMAND, [*v.split(), "--help"]).output for v in ("", *verbs)}
    return {"help": helps, "paths": sorted(CREATE_APP([]).app.openapi()["paths"])}


def record(out: Path) -> None:
    """Train all cases one after the other, and write what came of them."""
    torch.set_num_threads(1)
    known, found = datasets(), {}
    if missing := set(MODELS) - {RENAMED_MODELS.get(name, name) for name in CASES}:
        sys.exit(f"give cases of {', '.join(sorted(missing))}")
    with TemporaryDirectory() as runs:
        for name, (shared, *options) in CASES.items():
            for number, case in enumerate(options):
                label = f"{RENAMED_MODELS.get(name, name)}: {json.dumps(case)}"
                print(label, flush=True)
                folder = Path(runs, f"{name.replace('/', '-')}-{number}")
                found[label] = record_case(name, shared | case, known, folder)
    recipes = {name: READ_RECIPE(name).to_yaml() for name in READY_RECIPES()}
    out.write_text(json.dumps({"models": found, "recipes": recipes, "texts": texts()}, indent=1))


def renamed(content: Any, rules: list[tuple[str, str]]) -> Any:
    """A text after all rules (regular expression, replacement) in turn; of a record, its keys."""
    if isinstance(content, dict):
        inner = {k: renamed(v, rules) if isinstance(v, dict) else v for k, v in content.items()}
        return {renamed(key, rules): value for key, value in inner.items()}
    for pattern, replacement in rules:
        content = re.sub(pattern, replacement, content, flags=re.MULTILINE)
    return content


def differences(old: Any, new: Any, place: str) -> Iterator[str]:
    """What differs, a line each; of initial weights also their order, by which Adam counts them."""
    if isinstance(old, dict) and isinstance(new, dict):
        if place.endswith("initial") and old.keys() == new.keys() and list(old) != list(new):
            yield f"{place}: another order of tensors"
        for key in old | new:
            if key in old and key in new:
                yield from differences(old[key], new[key], f"{place} | {key}")
            else:
                yield f"{place} | {key}: only in the {'old' if key in old else 'new'} record"
    elif repr(old) != repr(new):  # as NaN is not equal to itself
        yield f"{place}: was {old!r}, is {new!r}"


def compare(old: Path, new: Path, renames: Path | None) -> int:
    """Print every difference; returns how many there are."""
    rules = json.loads(renames.read_text()) if renames else {}
    before, after = json.loads(old.read_text()), json.loads(new.read_text())
    models: dict[str, Any] = {}
    for label, parts in before["models"].items():
        name, _, about = label.partition(":")
        models[f"{rules.get('models', {}).get(name, name)}:{about}"] = {
            part: renamed(content, rules.get("metrics" if part == "metrics" else "tensors", []))
            for part, content in parts.items()
        }
    found = [*differences(models, after["models"], "models")]
    if (of_recipes := rules.get("recipes", [])) is not None:
        recipes = {name: renamed(text, of_recipes) for name, text in before["recipes"].items()}
        found += differences(recipes, after["recipes"], "recipes")
    print(*found, f"{len(found)} differences in {len(after['models'])} cases", sep="\n")
    return len(found)


def main() -> None:
    """Do what the command says; exit with 1 where two records differ."""
    parser = argparse.ArgumentParser(description="Record what models learn, and compare records.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    recording, comparing = verbs.add_parser("record"), verbs.add_parser("compare")
    recording.add_argument("out", type=Path)
    for name in ("old", "new", "--renames"):
        comparing.add_argument(name, type=Path)
    options = vars(parser.parse_args())
    do: Any = {"record": record, "compare": compare}[options.pop("verb")]
    sys.exit(bool(do(**options)))


if __name__ == "__main__":
    main()

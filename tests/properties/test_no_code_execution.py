"""Nothing that is read from a file is ever run."""

from __future__ import annotations

import io
import json
import pickle
import re
from pathlib import Path
from typing import Any

import pytest
import torch

import disentwine
from disentwine.errors import CheckpointError, UsageError
from disentwine.runs.checkpoint import (
    STATE,
    TRAINING,
    WEIGHTS,
    canonical_json,
    load_checkpoint,
    save_checkpoint,
    sha256,
)
from disentwine.runs.recipe import parse_options, read_recipe
from disentwine.runs.run import load_run
from disentwine.training.callbacks import Checkpoint

SOURCE = Path(disentwine.__file__).parent
FORBIDDEN = [
    r"\bpickle\b",
    r"(?<!safetensors\.)torch\.load\(",
    r"allow_pickle\s*=\s*True",
    r"yaml\.(unsafe_|full_)?load\(",
    r"\b(un|UnsafeL|FullL)oader\b",
    r"(?<![\w.])eval\(",
    r"(?<![\w.])exec\(",
    r"\bos\.system\(",
    r"shell\s*=\s*True",
    r"\b(marshal|shelve|dill|joblib)\b",
]


class Evil:
    """Runs code when it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> Any:
        return (Path.touch, (self.trace,))


@pytest.mark.parametrize("pattern", FORBIDDEN)
def test_the_package_has_no_way_to_run_what_it_reads(pattern: str) -> None:
    files = list(SOURCE.rglob("*.py"))
    assert len(files) > 30
    found = [
        f"{file.relative_to(SOURCE)}:{number}"
        for file in files
        for number, line in enumerate(file.read_text().splitlines(), start=1)
        if re.search(pattern, line)
    ]
    assert found == []


@pytest.mark.parametrize(
    "tag",
    [
        "!!python/object/apply:os.system ['touch {trace}']",
        "!!python/object/apply:pathlib.Path.touch [!!python/object/apply:pathlib.Path ['{trace}']]",
        "!!python/object/new:os.system ['touch {trace}']",
        "!!python/name:os.system",
        "!!python/module:os",
    ],
)
@pytest.mark.parametrize("place", ["{tag}", "data: {tag}", "model: {{name: vae, latent: {tag}}}"])
def test_a_recipe_with_a_python_tag_is_refused(tag: str, place: str, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    text = place.format(tag=tag.format(trace=trace))
    (tmp_path / "recipe.yaml").write_text(text)
    with pytest.raises(UsageError, match=r"recipe\.yaml is not valid YAML"):
        read_recipe(tmp_path / "recipe.yaml")
    with pytest.raises(UsageError, match=r"is not a run folder|is not valid YAML"):
        _ = load_run(tmp_path).recipe
    with pytest.raises(UsageError, match="not valid YAML"):
        parse_options([f"data={tag.format(trace=trace)}"])
    assert not trace.exists()


@pytest.mark.parametrize(
    "name", ["os.system", "disentwine.models.VAE", "__import__('os')", "../vae"]
)
@pytest.mark.parametrize("section", ["data", "model"])
def test_a_dotted_path_is_no_name(name: str, section: str, tmp_path: Path) -> None:
    other = {"data": "model: vae", "model": "data: pendulum"}[section]
    (tmp_path / "recipe.yaml").write_text(f'{section}: {{name: "{name}"}}\n{other}\n')
    with pytest.raises(UsageError, match=f"{section}.name: unknown name"):
        read_recipe(tmp_path / "recipe.yaml")


@pytest.mark.parametrize("name", [WEIGHTS, TRAINING, STATE])
@pytest.mark.parametrize("kind", ["pickle", "torch"])
def test_a_pickle_in_disguise_is_refused(name: str, kind: str, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    buffer = io.BytesIO()
    if kind == "torch":
        torch.save({"w": Evil(trace)}, buffer)
    else:
        pickle.dump(Evil(trace), buffer)
    path = save_checkpoint(tmp_path, Checkpoint(1, {"w": torch.zeros(2)}, {}))
    (path / name).write_bytes(buffer.getvalue())
    if name != STATE:
        # Even with a digest that fits.
        state = json.loads((path / STATE).read_text())
        del state["digest"]
        state["files"][name]["sha256"] = sha256(buffer.getvalue())
        state["digest"] = sha256(canonical_json(state))
        (path / STATE).write_bytes(canonical_json(state))
    with pytest.raises(CheckpointError, match=re.escape(str(path / name))):
        load_checkpoint(path)
    assert not trace.exists()

"""The Python of the guides runs as written, shortened; commands and links are valid."""

import re
import shlex
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
import yaml
from typer.main import get_command

from disentwine.cli import app
from disentwine.data import DATASETS
from disentwine.models import MODELS
from disentwine.runs.recipe import parse_recipe, read_recipe, ready_recipes
from disentwine.testing import check_model

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SHORTER = {
    r"\bsteps=[\d_]+": "steps=3, progress=False, threads=1",
    r", progress=False, threads=1, progress=False": ", progress=False, threads=1",
    r"Pendulum\(size=64": "Pendulum(size=32",
    r"pretrain_steps=\d+": "pretrain_steps=1",
    r'"from_step": \d+': '"from_step": 2',
    r'"downsampling": 8': '"downsampling": 16',
}
NEEDS_A_SERVER = {"how-to/use-the-http-api.md"}
LONGEST = 900
"""Words of a guide."""


def knows_causes(names: dict[str, Any]) -> bool:
    answer = names["answer"]
    causes = bool(names["model"].graph.edges) and bool(names["graph"].edges)
    return causes and answer.images.shape == names["images"].shape


def has_codes_of_all_layers(names: dict[str, Any]) -> bool:
    latents, model = names["latents"], names["model"]
    return latents.shape == (5, sum(model.layers)) and names["score"].n == 20


def moves_every_latent(names: dict[str, Any]) -> bool:
    scored = {"z-diff", "sap", "mig"} <= names["scores"].keys()
    return scored and names["rows"].shape == (10, 9, 64, 64, 1) and Path("traversals.png").exists()


def infers_actions(names: dict[str, Any]) -> bool:
    probabilities, actions = names["probabilities"], names["pairs"].actions
    return probabilities.shape == (10, len(actions)) and names["moved"].shape == (64, 64, 1)


def trains(names: dict[str, Any]) -> bool:
    return names["model"].represent(names["pendulum"].images[:2]).shape == (2, 4)


def does_interventions(names: dict[str, Any]) -> bool:
    return bool(names["model"].graph.names)


def keeps_a_run(names: dict[str, Any]) -> bool:
    return names["run"].finished and bool(names["run"].metrics)


def scores_a_run(names: dict[str, Any]) -> bool:
    return {"mig", "sap", "reconstruction-error"} <= names["scores"].keys()


def finds_the_direction(names: dict[str, Any]) -> bool:
    return [tuple(edge) for edge in names["graph"].edges] == [("light", "shadow")]


def loses_labels(names: dict[str, Any]) -> bool:
    some = names["some"]
    unlabelled = np.isnan(some.factors[some.split["train"]]).all(axis=1)
    return bool(unlabelled.mean().round(1) == 0.9)


def has_arrays(names: dict[str, Any]) -> bool:
    return names["mine"].names == ("height", "width")


def checks_a_model(names: dict[str, Any]) -> bool:
    return "check_model" in names


HOLDS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "tutorials/actions.md": infers_actions,
    "tutorials/causal.md": knows_causes,
    "tutorials/disentanglement.md": moves_every_latent,
    "tutorials/hierarchical.md": has_codes_of_all_layers,
    "how-to/add-a-model-metric-or-data-set.md": checks_a_model,
    "how-to/evaluate.md": scores_a_run,
    "how-to/save-load-and-resume.md": keeps_a_run,
    "how-to/set-training-options.md": trains,
    "how-to/train-a-causal-wae.md": does_interventions,
    "how-to/train-with-few-labels.md": loses_labels,
    "how-to/use-background-knowledge.md": finds_the_direction,
    "how-to/use-your-own-images.md": has_arrays,
}
"""What holds of the names that the Python of a guide leaves."""


def python_of(guide: str) -> str:
    text = (DOCS / guide).read_text(encoding="utf-8")
    return "\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL))


def guides() -> list[str]:
    found = (path for path in DOCS.rglob("*.md") if path.parent.name != "decisions")
    return sorted(str(path.relative_to(DOCS)) for path in found)


def test_all_guides_with_python_are_run() -> None:
    assert {guide for guide in guides() if python_of(guide)} == HOLDS.keys() | NEEDS_A_SERVER


@pytest.mark.parametrize("guide", HOLDS)
def test_the_lines_of_a_guide_run(
    guide: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = python_of(guide)
    assert "steps=" in lines or not guide.startswith("tutorials")
    for long, short in SHORTER.items():
        lines = re.sub(long, short, lines)
    names: dict[str, Any] = {}
    exec(compile(lines, guide, "exec"), names)
    assert HOLDS[guide](names)


def test_the_client_of_the_api_compiles() -> None:
    for guide in NEEDS_A_SERVER:
        compile(python_of(guide), guide, "exec")


@pytest.mark.parametrize("guide", guides())
def test_links_of_a_guide_lead_somewhere(guide: str) -> None:
    check_links(DOCS / guide)


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"])
def test_links_of_a_page_lead_somewhere(page: str) -> None:
    check_links(ROOT / page)


@pytest.mark.parametrize("decision", sorted(path.name for path in (DOCS / "decisions").glob("*")))
def test_links_of_a_decision_lead_somewhere(decision: str) -> None:
    check_links(DOCS / "decisions" / decision)


def check_links(page: Path) -> None:
    """Relative links resolve, and so do their anchors."""
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" in link:
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file) if file else page
        assert target.exists(), f"{page.name}: {link} leads nowhere"
        if anchor:
            assert anchor in anchors(target), f"{page.name}: {link} has no such heading"


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives to headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    kept = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.strip().replace(" ", "-") for heading in kept}


@pytest.mark.parametrize("guide", [guide for guide in guides() if guide != "lab-log.md"])
def test_a_guide_is_short(guide: str) -> None:
    assert len((DOCS / guide).read_text(encoding="utf-8").split()) <= LONGEST


def test_readme_fits_150_lines() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


def test_the_python_of_readme_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = "\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL))
    assert "steps=" in lines
    for long, short in SHORTER.items():
        lines = re.sub(long, short, lines)
    names: dict[str, Any] = {}
    exec(compile(lines, "README.md", "exec"), names)
    assert knows_the_graph(names)


def knows_the_graph(names: dict[str, Any]) -> bool:
    return bool(names["model"].graph.edges)


def test_the_model_of_contributing_keeps_the_contract() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    block = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)[0]
    names: dict[str, Any] = {"__name__": "contributing"}
    exec(compile(textwrap.dedent(block), "CONTRIBUTING.md", "exec"), names)
    shape = (8, 8, 1)
    check_model(lambda: names["MyVAE"](image_shape=shape, latent=2), image_shape=shape)


def pages() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(DOCS / guide for guide in guides())]


def shell_lines(page: Path) -> list[str]:
    """The indented commands of a page, without comments; continued lines are joined."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    found = re.findall(r"^ {4,}(disentwine [^#|\n]*)", text, flags=re.MULTILINE)
    return [line.strip() for line in found]


def commands() -> list[tuple[str, str]]:
    lines = [(page.name, line) for page in pages() for line in shell_lines(page)]
    assert len(lines) > 50
    return lines


@pytest.mark.parametrize(("page", "line"), commands())
def test_a_command_has_known_verbs_options_and_keys(page: str, line: str) -> None:
    verb, *words = shlex.split(line)[1:]
    command: Any = get_command(app).get_command(typer.Context(get_command(app)), verb)
    assert command is not None, f"{page}: there is no command {verb}"
    if verb == "data":
        assert words[0] in command.commands
        return
    options = {name for parameter in command.params for name in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= options, f"{page}: {line}"
    if verb == "train" and words[0] in ready_recipes():
        changes = [word for word in words if re.match(r"(data|model|training)\.\w", word)]
        if "model.name=my-vae" not in changes:
            read_recipe(words[0], changes)


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_the_recipes_of_a_page_are_valid(page: Path) -> None:
    for block in re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        sections = yaml.safe_load(block)
        parse_recipe({"training": {}} | sections, source=page.name)


def test_readme_names_models_and_data_sets() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = text[text.index("| you have") : text.index("## Commands")]
    names = set(re.findall(r"`([a-z0-9/-]+)`", table))
    assert names <= MODELS.keys() | DATASETS.keys()
    assert names & MODELS.keys() == MODELS.keys() - {"causal-wae/layered"}

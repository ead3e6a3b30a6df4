"""disentwine do: counterfactual images and actions; and retrieve: the action between two images."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from disentwine import CTVAE, VAE, CausalVAE, LayeredCausalVAE, data, fit, load_run
from disentwine.causal.concepts import Concept
from disentwine.core.dataset import display_order
from disentwine.core.interventions import Intervention
from disentwine.models import QuantizerOptions


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A causal run, a plain one, one with actions, and a picture."""
    folder = tmp_path_factory.mktemp("runs")
    pendulum = data.Pendulum(size=32)
    edges = tuple(pendulum.graph.edges)
    options = {"steps": 2, "batch_size": 8, "threads": 1}
    fit(CausalVAE.for_data(pendulum, edges=edges), pendulum, out=folder / "causal", **options)
    fit(VAE.for_data(pendulum, latent=2), pendulum, out=folder / "plain", **options)
    shapes = data.Shapes3D(hues=2, scales=3, orientations=2)
    autoencoder = QuantizerOptions(codebook_size=8, code_dim=2, channels=8)
    acting = CTVAE.for_data(shapes, pretrain_steps=1, autoencoder=autoencoder)
    fit(acting, shapes, out=folder / "acting", **options)
    Image.fromarray(pendulum.images[0]).resize((50, 40)).save(folder / "scene.png")
    return folder


def test_a_picture_is_drawn(command: Any, runs: Path) -> None:
    answer = command("do", runs / "causal", runs / "scene.png", "light_angle=60", "--out", "cf.png")
    assert answer.code == 0, answer.err
    assert np.asarray(Image.open("cf.png")).shape == (32, 32, 3)
    words = {line.split()[1]: line.split() for line in answer.out.splitlines() if "_" in line}
    assert "60" in words["light_angle"]
    assert "set" in words["light_angle"]
    assert "affected" in words["shadow_length"]
    assert {"set", "affected"}.isdisjoint(words["pendulum_angle"])
    assert "the centre square of 50x40 pixels was resized to 32x32" in answer.out
    again = command("do", runs / "causal", runs / "scene.png", "light_angle=60", "--out", "cf.png")
    assert again.code == 2
    assert "exists already" in again.err


def test_a_concept_is_moved_by_so_much(command: Any, runs: Path) -> None:
    answer = command("do", runs / "causal", runs / "scene.png", "light_angle-=12.5")
    assert answer.code == 0, answer.err
    row = next(line for line in answer.out.splitlines() if "light_angle" in line)
    before, after = (float(word) for word in row.split() if word.replace(".", "").isdigit())
    assert after == pytest.approx(before - 12.5, abs=0.02)
    assert "set" in row


def test_a_second_picture_leaves_the_first_alone(command: Any, runs: Path) -> None:
    names = ["counterfactual.png", "counterfactual-2.png"]
    for name in names:
        answer = command("do", runs / "causal", runs / "scene.png", "light_angle=60")
        assert answer.code == 0, answer.err
        assert f"image: {name}" in answer.out
        assert Path(name).exists()
        assert "outside" not in answer.out


def test_a_guess_far_from_training_is_said_to_be_one(command: Any, runs: Path) -> None:
    answer = command("do", runs / "causal", runs / "scene.png", "light_angle=6000")
    assert answer.code == 0, answer.err
    assert "outside the training range" in answer.out


def test_a_value_a_little_outside_the_range_is_no_guess(command: Any, runs: Path) -> None:
    """Training labels end at 132.3; the note comes beyond 10 % of their range."""
    for value, noted in (("138", False), ("142", True)):
        answer = command("do", runs / "causal", runs / "scene.png", f"light_angle={value}")
        assert answer.code == 0, answer.err
        assert ("outside the training range" in answer.out) == noted
    assert "light_angle=142 (54 to 132.3)" in answer.out


def test_no_data_are_needed_for_an_image_of_ones_own(
    command: Any, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unavailable(self: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr("disentwine.runs.recipe.Recipe.build_dataset", unavailable)
    answer = command("do", runs / "causal", runs / "scene.png", "light_angle=60")
    assert answer.code == 0, answer.err
    assert "degrees" in answer.out


def test_actions_are_done_one_after_the_other(command: Any, runs: Path) -> None:
    answer = command(
        "do", runs / "acting", "t-0", "+floor_hue", "-scale", "+scale", "--out", "acted.png"
    )
    assert answer.code == 0, answer.err
    assert "t-0 after +floor_hue, -scale, +scale" in answer.out
    run = load_run(runs / "acting")
    picture = run.dataset.images[display_order(run.dataset.split)[0]]
    acted = run.model.apply(picture, ["+floor_hue", "-scale", "+scale"])
    np.testing.assert_array_equal(np.asarray(Image.open("acted.png")), acted)


def test_actions_beyond_the_last_value_are_told(command: Any, runs: Path) -> None:
    scale = load_run(runs / "acting").dataset
    first = scale.factors[display_order(scale.split)[0], scale.names.index("scale")]
    grid = np.unique(scale.column("scale"))
    room = int((grid > first).sum())
    for more, told in ((0, False), (1, True)):
        words = ["+floor_hue", *["+scale"] * (room + more)]
        answer = command("do", runs / "acting", "t-0", *words, "--out", f"{more}.png")
        assert answer.code == 0, answer.err
        note = f"+scale leads beyond the last value of its factor, so from action {room + 2} on"
        assert (note in " ".join(answer.out.split())) == told


@pytest.mark.parametrize(
    ("run", "picture", "word", "hint"),
    [
        ("causal", "scene.png", "lihgt_angle=60", "Did you mean 'light_angle'?"),
        ("causal", "scene.png", "light_angle=high", "give a number"),
        ("causal", "scene.png", "light_angle", "light_angle=1.5; it has none"),
        ("causal", "scene.png", "light_angle=", "got nothing"),
        ("causal", "scene.png", "light_angle=nan", "finite number"),
        ("causal", "scene.png", "light_angle+=much", "give a number"),
        ("causal", "scene.png", "light_angle+-=1", "no concept 'light_angle+-'"),
        ("causal", "none.png", "light_angle=60", "none.png"),
        ("causal", "causal", "light_angle=60", "is a folder"),
        ("plain", "scene.png", "light_angle=60", "neither concepts nor actions"),
        ("acting", "scene.png", "+scael", "there is no action '+scael'. Did you mean '+scale'?"),
    ],
)
def test_what_cannot_be_done_is_said(
    command: Any, runs: Path, run: str, picture: str, word: str, hint: str
) -> None:
    answer = command("do", runs / run, runs / picture, word)
    assert answer.code in (1, 2)
    assert hint in answer.err
    assert not Path("counterfactual.png").exists()


def test_the_report_shows_interventions_and_the_graph(command: Any, runs: Path) -> None:
    answer = command("report", runs / "causal")
    assert answer.code == 0, answer.err
    page = (runs / "causal" / "report.html").read_text()
    assert "Counterfactuals" in page
    assert "All edges match the true graph." in page


def test_a_test_image_is_taken_by_its_name_on_the_page(command: Any, runs: Path) -> None:
    answer = command("do", runs / "causal", "t-0", "light_angle=60", "--out", "moved.png")
    assert answer.code == 0, answer.err
    pendulum = data.Pendulum(size=32)
    picture = pendulum.images[display_order(pendulum.split)[0]]
    moved = load_run(runs / "causal").model.do(picture, light_angle=60)
    np.testing.assert_array_equal(np.asarray(Image.open("moved.png")), moved)
    assert "resized" not in answer.out
    none = command("do", runs / "causal", "t-5000", "light_angle=60")
    assert none.code == 2
    assert "1,826 are available" in none.err


def test_names_of_concepts_may_look_like_signs() -> None:
    concepts = Concept("CD4+"), Concept("a=b")
    assert Intervention.parse(["CD4+=.5", "a=b=3"], concepts).values == {0: 0.5, 1: 3.0}


def test_why_there_are_no_test_images_is_said(command: Any, runs: Path, tmp_path: Path) -> None:
    """Data that were given as arrays are nowhere to be read from again."""
    pendulum = data.Pendulum(size=32)
    arrays = data.Arrays(
        images=pendulum.images[:60], factors=pendulum.factors[::100][:60, :2], names=("a", "b")
    )
    model = CausalVAE.for_data(arrays, edges=())
    fit(model, arrays, steps=2, batch_size=8, threads=1, out=tmp_path / "arrays")
    answer = command("do", tmp_path / "arrays", "t-0", "a=1")
    assert answer.code in (1, 2)
    assert "in memory" in answer.err


def test_actions_are_told_from_two_pictures(command: Any, runs: Path) -> None:
    run = load_run(runs / "acting")
    first, second = (run.dataset.images[i] for i in display_order(run.dataset.split)[:2])
    Image.fromarray(second).save("after.png")
    answer = command("retrieve", runs / "acting", "t-0", "after.png")
    assert answer.code == 0, answer.err
    lines = [line.split() for line in answer.out.splitlines() if "%" in line]
    found = {word[1]: float(word[3].rstrip("%")) for word in lines}
    expected = dict(zip(run.model.actions, 100 * run.model.retrieve(first, second), strict=True))
    assert found == pytest.approx(expected, abs=0.051)
    assert list(found.values()) == sorted(found.values(), reverse=True)


def test_nothing_is_retrieved_by_a_model_without_actions(command: Any, runs: Path) -> None:
    answer = command("retrieve", runs / "plain", "t-0", "t-1")
    assert answer.code == 2
    assert "has no actions" in answer.err


@pytest.fixture(scope="module", params=[CausalVAE, LayeredCausalVAE])
def coloured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on one's own folder, with four colours."""
    pictures = tmp_path_factory.mktemp("coloured")
    rng = np.random.default_rng(0)
    colours = {"blue": (0, 0, 255), "green": (0, 255, 0), "grey": (99, 99, 99), "red": (255, 0, 0)}
    rows = ["file,height,colour"]
    for i, height in enumerate(rng.integers(2, 14, 60)):
        name = list(colours)[i % 4]
        picture = np.full((16, 16, 3), 255, np.uint8)
        picture[-height:, 4:12] = colours[name]
        Image.fromarray(picture).save(pictures / f"{i}.png")
        rows.append(f"{i}.png,{height},{name}")
    (pictures / "concepts.csv").write_text("\n".join(rows) + "\n")
    own = data.Folder(path=pictures, size=16)
    model = request.param.for_data(own, edges=())
    fit(model, own, steps=2, batch_size=8, threads=1, out=pictures / "run")
    return pictures / "run"


def test_categories_are_set_by_name(command: Any, coloured: Path) -> None:
    answer = command("do", coloured, "t-0", "colour=red")
    assert answer.code == 0, answer.err
    row = next(line for line in answer.out.splitlines() if "colour" in line)
    assert "red" in row
    assert command("do", coloured, "t-0", "colour=3").code == 0
    run = load_run(coloured)
    expected = run.model.do(run.dataset.images[display_order(run.dataset.split)[0]], colour=3)
    for name in ("counterfactual.png", "counterfactual-2.png"):
        np.testing.assert_array_equal(np.asarray(Image.open(name)), expected)


@pytest.mark.parametrize(
    "word", ["colour=1.5", "colour=7", "colour=purple", "colour=", "colour+=1"]
)
def test_what_is_no_category_is_refused(command: Any, coloured: Path, word: str) -> None:
    answer = command("do", coloured, "t-0", word)
    assert answer.code == 2
    assert "'colour' is one of blue, green, grey, red, or its number from 0 to 3; got" in answer.err
    assert not Path("counterfactual.png").exists()


def test_a_guess_is_told_once(command: Any, coloured: Path) -> None:
    answer = command("do", coloured, "t-0", "height=1000")
    assert (answer.out + answer.err).count("outside the training range") == 1

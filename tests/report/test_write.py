"""A report is one page that shows what a model can do, and leaves out what it cannot."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from disentwine.core.dataset import Dataset
from disentwine.core.model import Batch, Losses, Model
from disentwine.core.score import Score
from disentwine.data import Folder
from disentwine.errors import CheckpointError, DataError, DisentwineError
from disentwine.evaluation import evaluate, evaluate_run
from disentwine.models import MODELS, VAE
from disentwine.nn.images import accepts_images
from disentwine.report import write_report
from disentwine.report.html import Image as SectionImage
from disentwine.report.html import Section, Table, write_page
from disentwine.runs.fit import fit
from disentwine.runs.run import Run, keep_scores, load_run

PNG = "data:image/png;base64,"
EVERY_SECTION = [
    "Reconstructions",
    "Latent traversals",
    "Mutual information with factors",
    "KL per latent",
    "Samples",
    "Training",
    "Metrics",
    "Recipe",
    "Reproduce",
    "Versions",
]


class Pages(HTMLParser):
    """Tags that were opened, their attributes, and whether every one was closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "br", "link"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def headings(html: str) -> list[str]:
    return re.findall(r"<h2>(.*?)</h2>", html)


class Grey(Dataset):
    """Small grey images without factors; the test split may be empty."""

    def __init__(self, test: int = 6) -> None:
        self.images = np.random.default_rng(0).integers(0, 256, (40, 16, 16, 1), dtype=np.uint8)
        self.factors = np.zeros((40, 0))
        self.spec = ()
        cut = 40 - test
        self.split = {
            "train": np.arange(0, 20),
            "validation": np.arange(20, cut),
            "test": np.arange(cut, 40),
        }


def folder_of_pictures(path: Path) -> Path:
    """Sixty pictures of a bar that moves, with its place in a table."""
    path.mkdir()
    rows = ["file,place"]
    for i in range(60):
        picture = np.zeros((16, 16, 3), np.uint8)
        picture[:, i % 13 : i % 13 + 4, i % 3] = 255
        Image.fromarray(picture).save(path / f"{i}.png")
        rows.append(f"{i}.png,{i % 13}")
    (path / "table.csv").write_text("\n".join(rows))
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("runs")
    path = home / "small & <sweet>"
    data = Folder(path=str(folder_of_pictures(home / "pictures")), table="table.csv", size=16)
    torch.manual_seed(0)
    model = VAE.for_data(data, latent=3, network="mlp")
    fit(model, data, steps=30, log_every=10, batch_size=16, learning_rate=0.01, out=path)
    return path


def test_a_page_tells_what_was_measured_before_with_the_same_weights(trained: Path) -> None:
    run = load_run(trained)
    keep_scores(run, [Score("dci-disentanglement", 0.123456, n=7)])
    html = write_report(run).read_text(encoding="utf-8")
    assert html.count("dci-disentanglement") == 1
    assert "reconstruction-error" in html
    (trained / "evaluation.json").unlink()
    assert "dci-disentanglement" not in write_report(run).read_text(encoding="utf-8")


def test_a_page_needs_no_other_file(trained: Path) -> None:
    page = write_report(load_run(trained))
    html = page.read_text(encoding="utf-8")
    assert page == trained / "report.html"
    assert headings(html) == EVERY_SECTION
    parsed = Pages(html)
    assert parsed.open == []
    for tag, attributes in parsed.tags:
        assert tag not in ("script", "link", "iframe")
        assert (attributes.get("src") or PNG).startswith(PNG)
    images = [attributes for tag, attributes in parsed.tags if tag == "img"]
    assert len(images) == 6
    assert all(image["alt"] and int(image["width"] or 0) > 0 for image in images)
    assert "http" not in re.sub(r"base64,[^\"]*", "", html)
    assert sorted(p.stem for p in (trained / "figures").glob("*.png")) == [
        "activity",
        "losses",
        "mutual-information",
        "reconstructions",
        "samples",
        "traversals",
    ]


def test_the_page_says_what_was_done(trained: Path) -> None:
    html = write_report(load_run(trained)).read_text(encoding="utf-8")
    assert "<h1>vae on folder</h1>" in html
    assert ">finished</p>" in html
    assert re.search(r"Trained on \d+ of 60 images for 30 steps in .* at step \d+\.", html)
    assert "latent: 3" in html
    assert "disentwine train &#x27;small &amp; &lt;sweet&gt;/recipe.yaml&#x27; --out" in html
    assert "<sweet>" not in html


def test_the_same_run_gives_the_same_page(trained: Path) -> None:
    first = write_report(load_run(trained)).read_bytes()
    assert write_report(load_run(trained)).read_bytes() == first


def test_an_unfinished_run_says_how_far_it_came(trained: Path, tmp_path: Path) -> None:
    run = load_run(trained)
    status = run.status
    try:
        run.write_status(**(status | {"state": "unfinished", "step": 20}))
        assert "unfinished, step 20 of 30" in write_report(run).read_text(encoding="utf-8")
        (trained / "status.json").unlink()
        assert "unfinished, step 30 of 30" in write_report(Run(trained)).read_text(encoding="utf-8")
    finally:
        run.write_status(**status)


def test_scores_agree_with_the_training_s_own_validation(trained: Path) -> None:
    run = load_run(trained)
    scores = {score.name: score for score in evaluate_run(run).scores}
    own_scores = ["loss", "reconstruction", "kl", "reconstruction-error", "active-units"]
    assert list(scores) == [*own_scores, "sap", "mig", "mic", "tic"]
    assert all(score.n == len(run.dataset.split["test"]) for score in scores.values())
    total = scores["reconstruction"].value + scores["kl"].value
    assert scores["loss"].value == pytest.approx(total, rel=1e-5)

    data = load_run(trained).dataset
    data.split = {**data.split, "test": data.split["validation"]}
    own = next(
        r for r in run.metrics if r["kind"] == "validation" and r["step"] == run.checkpoint.step
    )
    again = {score.name: score.value for score in evaluate_run(run, dataset=data).scores}
    assert again["loss"] == pytest.approx(own["loss"], rel=1e-4)
    assert again["kl"] == pytest.approx(own["kl"], rel=1e-4)


def test_grey_images_without_factors_or_test_split(tmp_path: Path) -> None:
    data = Grey(test=0)
    fit(VAE.for_data(data, latent=2), data, steps=2, batch_size=8, out=tmp_path / "run")
    run = load_run(tmp_path / "run")
    html = write_report(run, dataset=data).read_text(encoding="utf-8")
    assert headings(html) == [heading for heading in EVERY_SECTION if "factor" not in heading]
    assert "Held-out images of the validation split" in html
    assert "disentwine train" not in html
    with pytest.raises(DisentwineError, match="arrays in memory"):
        write_report(run)


def test_a_large_split_is_sampled() -> None:
    data = Grey(test=10)
    model = VAE.for_data(data, latent=2)
    found, again = (evaluate(model, data, limit=4) for _ in range(2))
    assert len(set(found.indices) & set(range(30, 40))) == 4
    assert found.indices.tolist() == again.indices.tolist()
    assert {score.n for score in found.scores} == {4}


class Plain(Model):
    """Only what the contract asks for: neither decoder nor samples nor a posterior."""

    def __init__(self, *, image_shape: tuple[int, int, int]) -> None:
        super().__init__()
        self.image_shape = image_shape
        self.scale = torch.nn.Parameter(torch.ones(()))

    def loss(self, batch: Batch) -> Losses:
        return Losses({"error": (batch.x * self.scale - 0.5).square().mean()})

    @accepts_images
    def represent(self, x: Any) -> Any:
        return 10 * x.mean(dim=(2, 3)).repeat(1, 2) * self.scale.new_tensor([1.0, 0.0])

    @accepts_images
    def reconstruct(self, x: Any) -> Any:
        return x


def test_what_a_model_cannot_do_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(MODELS, "plain", Plain)
    data = Grey()
    fit(Plain.for_data(data), data, steps=2, batch_size=8, out=tmp_path / "run")
    html = write_report(load_run(tmp_path / "run"), dataset=data).read_text(encoding="utf-8")
    expected = [h for h in EVERY_SECTION if h not in (*EVERY_SECTION[1:3], "Samples")]
    assert headings(html) == [h.replace("KL per", "Variance per") for h in expected]
    assert "reconstruction-error" in html


def test_data_that_is_gone_is_the_data_s_own_error(tmp_path: Path) -> None:
    folder = folder_of_pictures(tmp_path / "images")
    data = Folder(path=str(folder), table="table.csv", size=16)
    fit(VAE.for_data(data, latent=2), data, steps=1, batch_size=8, out=tmp_path / "run")
    assert write_report(load_run(tmp_path / "run")).is_file()
    folder.rename(tmp_path / "elsewhere")
    with pytest.raises(DataError):
        write_report(load_run(tmp_path / "run"))


def test_a_run_without_a_checkpoint_is_refused(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "recipe.yaml").write_text((trained / "recipe.yaml").read_text())
    with pytest.raises(CheckpointError, match="no checkpoint"):
        write_report(load_run(tmp_path))


def test_everything_on_a_page_is_escaped() -> None:
    evil = "<b>&\"'$title"
    png = b"\x89PNG" + bytes(12) + (40).to_bytes(4) + (20).to_bytes(4)
    section = Section(evil, evil, SectionImage("x", evil, png), Table((evil,), ((evil,),)), evil)
    html = write_page(title=evil, badge=evil, summary=evil, sections=[section])
    assert "<b>" not in html
    assert html.count("&lt;b&gt;&amp;&quot;&#x27;$title") == 10
    assert 'width="20" height="10"' in html

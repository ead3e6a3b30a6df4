"""The report of models whose codes are names: nothing depends on how they are called."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from disentwine import figures
from disentwine.data import Arrays
from disentwine.evaluation.evaluate import evaluate
from disentwine.evaluation.latents import code_frequencies
from disentwine.models import CTVAE, MCQVAE
from disentwine.report.context import ReportContext
from disentwine.report.html import Section
from disentwine.report.sections.latents import kl_per_latent, traversals

CODES = 12


@pytest.fixture(scope="module")
def pictures() -> Arrays:
    images = np.random.default_rng(0).integers(0, 256, (60, 16, 16, 1), dtype=np.uint8)
    return Arrays(images=images, factors=np.arange(60)[:, None] % 3, names=["step"], test=0.5)


def made(kind: type, pictures: Arrays, *, renamed: bool) -> Any:
    """A model whose vectors are far enough apart to have many names; the names changed about."""
    torch.manual_seed(0)
    small = {"codebook_size": CODES, "code_dim": 2, "channels": 8}
    model = kind.for_data(pictures, **(small if kind is MCQVAE else {"autoencoder": small}))
    book = model if kind is MCQVAE else model.mcq_vae
    with torch.no_grad():
        x = torch.from_numpy(pictures.images[:CODES]).permute(0, 3, 1, 2) / 255
        table = book.vectors(x)[:, :, 0].transpose(0, 1).clone()
        table[:, -4:] = 100.0  # names that nothing has
        order = torch.randperm(CODES) if renamed else torch.arange(CODES)
        book.quantizer.table.copy_(table[:, order])
    return model


def shown(model: Any, pictures: Arrays, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Texts, pictures and numbers of both sections."""
    found: dict[str, Any] = {}
    for name in ("labelled_rows", "latent_activity"):
        real = getattr(figures, name)

        def kept(*args: Any, name: str = name, real: Any = real, **more: Any) -> Any:
            found[name] = (args, more)
            return real(*args, **more)

        monkeypatch.setattr(figures, name, kept)
    run: Any = SimpleNamespace(model=model)
    subject = ReportContext(run, pictures, evaluate(model, pictures, "none"))
    found["subject"] = subject
    for make in (traversals, kl_per_latent):
        section = make(subject)
        assert isinstance(section, Section)
        found[make.__name__] = section
    monkeypatch.undo()
    return found


@pytest.mark.parametrize("kind", [MCQVAE, CTVAE])
def test_other_names_show_the_same(
    kind: type, pictures: Arrays, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, again = (
        shown(made(kind, pictures, renamed=renamed), pictures, monkeypatch)
        for renamed in (False, True)
    )
    codes, others = first["subject"].found.latents, again["subject"].found.latents
    assert (codes != others).any()
    assert len(np.unique(codes)) > 2
    (images, labels, _), (renamed_images, renamed_labels, _) = (
        found["labelled_rows"][0] for found in (first, again)
    )
    np.testing.assert_array_equal(images, renamed_images)
    assert labels == renamed_labels
    bars, renamed_bars = (found["latent_activity"] for found in (first, again))
    np.testing.assert_array_equal(bars[0][0], renamed_bars[0][0])
    assert bars[1] == renamed_bars[1]
    for name in ("traversals", "kl_per_latent"):
        assert first[name] == again[name]


def test_the_commonest_names_of_a_unit_are_shown_and_said_to_be_names(
    pictures: Arrays, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = made(MCQVAE, pictures, renamed=False)
    found = shown(model, pictures, monkeypatch)
    subject, (images, labels, columns) = found["subject"], found["labelled_rows"][0]
    unit, codes = subject.most_informative[0], subject.found.latents
    names, shares = code_frequencies(codes[:, unit])
    assert labels[0] == f"z{unit}\ndiffers {1 - (shares**2).sum():.2f}"
    code = torch.from_numpy(codes[0]).clone()
    for rank, name in enumerate(names):
        code[unit] = float(name)
        painted = (model.decode(code[None])[0].permute(1, 2, 0) * 255).round().byte()
        np.testing.assert_array_equal(images[0, rank], painted.numpy())
    assert (images[0, len(names) :] == 255).all()
    assert columns[:3] == ("most frequent", "2nd", "3rd")
    assert "Codes are categories" in found["traversals"].text
    assert "deviations" not in found["traversals"].text
    assert (
        "two images have different codes with a probability above 0.01"
        in found["kl_per_latent"].text
    )
    assert (
        found["latent_activity"][1]["measure"] == "probability that two images have different codes"
    )
    assert all((subject.activity > 0.01) == subject.active)


def test_names_that_are_as_common_come_as_they_are_seen() -> None:
    names, shares = code_frequencies(np.array([7.0, 2.0, 2.0, 7.0, 1.0]))
    assert names.tolist() == [7, 2, 1]
    assert shares.tolist() == [0.4, 0.4, 0.2]

"""The hierarchical VAE and the ladder VAE against their equations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from disentwine.core.capabilities import capabilities
from disentwine.core.model import Batch
from disentwine.core.random import fixed_noise
from disentwine.data import Arrays
from disentwine.errors import Interrupted, UsageError
from disentwine.losses.elbo import kl_to_standard_normal
from disentwine.models import VAE, HierarchicalVAE, LadderVAE
from disentwine.models.hierarchical.base import HierarchicalModel
from disentwine.nn.encoders import DiagonalGaussian
from disentwine.runs.fit import fit
from disentwine.runs.run import load_run

SHAPE = (12, 12, 1)
BOTH = pytest.mark.parametrize("kind", [HierarchicalVAE, LadderVAE])
Kind = type[HierarchicalVAE] | type[LadderVAE]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def images(n: int = 6) -> Tensor:
    with fixed_noise(1):
        return torch.rand(n, 1, 12, 12).round()


def batch(n: int = 6, step: int = 0) -> Batch:
    return Batch(images(n), torch.zeros(n, 0), step)


def build(kind: Kind, **options: Any) -> HierarchicalModel:
    with fixed_noise(0):
        sizes = {"layers": (5, 4, 3), "hidden": (24, 16, 8)}
        return kind(image_shape=SHAPE, **(sizes | options))


def livelier(model: HierarchicalModel) -> HierarchicalModel:
    """Larger weights, so that posteriors differ from priors as in a trained model."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "head" in name or "decoder.1" in name:
                parameter.mul_(3)
    return model


class FirstLayer(nn.Module):
    """What a one-layer ladder's encoder says, as a VAE's encoder says it."""

    def __init__(self, ladder: LadderVAE) -> None:
        super().__init__()
        self.ladder = ladder

    def forward(self, x: Tensor) -> Tensor:
        q: DiagonalGaussian = self.ladder.heads[0](self.ladder.up[0](self.ladder.stem(x)))
        return torch.cat([q.mean, q.log_variance], dim=1)


def test_one_layer_is_the_vae() -> None:
    """The same networks inside `VAE` give the same numbers: losses, codes, images, weights."""
    ladder = build(LadderVAE, layers=(5,), batch_norm=False)
    assert isinstance(ladder, LadderVAE)
    vae = VAE(image_shape=SHAPE, latent=5)
    vae.encoder, vae.decoder = FirstLayer(ladder), ladder.decoder
    with fixed_noise(2):
        ours = ladder.loss(batch())
    with fixed_noise(2):
        theirs = vae.loss(batch())
    torch.testing.assert_close(ours.terms["reconstruction"], theirs.terms["reconstruction"])
    torch.testing.assert_close(ours.terms["kl_1"], theirs.terms["kl"])
    torch.testing.assert_close(ladder.represent(images()), vae.represent(images()))
    torch.testing.assert_close(ladder.reconstruct(images()), vae.reconstruct(images()))
    with fixed_noise(2):
        weights = vae.log_weights(images()[:1], samples=4)
    with fixed_noise(2):
        torch.testing.assert_close(ladder.log_weights(images()[:1], samples=4), weights)


def test_one_layer_ladder_and_hierarchy_are_one_model() -> None:
    ladder, hierarchy = (
        build(kind, layers=(5,), batch_norm=True) for kind in (LadderVAE, HierarchicalVAE)
    )
    names = {"posteriors.0.d": "up.0", "posteriors.0.head": "heads.0"}
    weights = dict(ladder.state_dict())
    for new, old in names.items():
        for name in [name for name in weights if name.startswith(old)]:
            weights[new + name.removeprefix(old)] = weights.pop(name)
    hierarchy.load_state_dict(weights)
    totals = []
    for model in (ladder, hierarchy):
        with fixed_noise(3):
            totals.append(model.loss(batch()).total)
    assert torch.equal(*totals)


def test_the_ladders_posterior_merges_what_is_said_and_what_is_expected() -> None:
    """Layer by layer, with the product of two Gaussians written out in precisions."""
    model = livelier(build(LadderVAE)).eval()
    assert isinstance(model, LadderVAE)
    with fixed_noise(4), torch.no_grad():
        levels = model.infer(images())
    d, said = model.stem(images()), []
    for up, head in zip(model.up, model.heads, strict=True):
        d = up(d)
        said.append(head(d))
    torch.testing.assert_close(levels[-1].q.mean, said[-1].mean)
    torch.testing.assert_close(levels[-1].q.log_variance, said[-1].log_variance)
    for i in (0, 1):
        p = model.priors[i](levels[i + 1].z)
        precision = torch.exp(-said[i].log_variance) + torch.exp(-p.log_variance)
        mean = (
            said[i].mean * torch.exp(-said[i].log_variance) + p.mean * torch.exp(-p.log_variance)
        ) / precision
        torch.testing.assert_close(levels[i].p.mean, p.mean)
        torch.testing.assert_close(levels[i].q.mean, mean, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(levels[i].q.log_variance, -precision.log())


@BOTH
def test_the_bound_with_one_sample_is_the_elbo(kind: Kind) -> None:
    """The mean of one-sample log weights, within 4.5 standard errors of minus the total loss."""
    model, n = livelier(build(kind)).eval(), 4000
    x = images(1)
    with fixed_noise(5), torch.no_grad():
        losses = model.loss(Batch(x.expand(n, -1, -1, -1), torch.zeros(n, 0)))
        totals = -sum(losses.terms.values())
        weights = model.log_weights(x, samples=n)[:, 0]
    assert set(losses.weights.values()) == {1.0}
    error = math.sqrt((totals.var() + weights.var()).item() / n)  # type: ignore[union-attr]
    assert abs(totals.mean() - weights.mean()) < 4.5 * error  # type: ignore[union-attr]


@BOTH
def test_the_bound_rises_with_the_samples(kind: Kind) -> None:
    """Each step from K to more samples raises the mean by more than 4 standard errors."""
    model = livelier(build(kind)).eval()
    groups = 400
    with fixed_noise(6):
        log_weights = model.log_weights(images(1), samples=groups * 64)[:, 0].view(groups, 64)
    # The same draws at every K, so that differences are within a group.
    bounds = [
        log_weights.view(groups, 64 // k, k).logsumexp(2).mean(1) - math.log(k)
        for k in (1, 4, 16, 64)
    ]
    for smaller, larger in pairwise(bounds):
        gain = larger - smaller
        assert gain.mean() > 4 * gain.std() / math.sqrt(groups)


@BOTH
def test_training_with_more_samples_maximises_that_bound(kind: Kind) -> None:
    model = livelier(build(kind, importance_samples=8)).eval()
    with fixed_noise(7):
        losses = model.loss(batch())
    with fixed_noise(7):
        log_weights = model.log_weights(images(), samples=8)
    expected = math.log(8) - log_weights.logsumexp(0)
    torch.testing.assert_close(losses.terms["bound"], expected)
    assert set(losses.weights) == {"reconstruction", "kl_1", "kl_2", "kl_3"}
    assert set(losses.weights.values()) == {0.0}
    torch.testing.assert_close(losses.total, expected.mean())
    assert not any(losses.terms[name].requires_grad for name in losses.weights)


@BOTH
def test_weights_average_to_a_likelihood_that_is_known(kind: Kind) -> None:
    """A decoder that ignores z has p(x) in closed form, whatever the layers do."""
    model, samples = build(kind).eval(), 20_000
    with torch.no_grad():
        model.decoder[1][0].weight.zero_()
        for name, bias in model.named_parameters():
            if name.startswith(("heads", "posteriors")) and name.endswith("linear.bias"):
                # Posteriors not much narrower than priors, so that the weights have a variance.
                bias[len(bias) // 2 :] += 1
    logits = model.decoder[1][0].bias.detach()
    exact = torch.distributions.Bernoulli(logits=logits).log_prob(images().flatten(1)).sum(1)
    with fixed_noise(8):
        weights = (model.log_weights(images(), samples=samples).double() - exact).exp()
    error = weights.std(0) / math.sqrt(samples)
    assert (error < 0.05).all()
    assert ((weights.mean(0) - 1).abs() < 4.5 * error).all()


@BOTH
def test_warm_up_weighs_every_layer_from_nothing_to_one(kind: Kind) -> None:
    model = build(kind, warm_up_steps=100)
    for step, beta in ((0, 0.0), (50, 0.5), (100, 1.0), (500, 1.0)):
        assert model.loss(batch(step=step)).weights == dict.fromkeys(("kl_1", "kl_2", "kl_3"), beta)


def test_warm_up_tempers_the_weights_of_several_samples() -> None:
    model = livelier(build(LadderVAE, importance_samples=8, warm_up_steps=100)).eval()
    with fixed_noise(9):
        losses = model.loss(batch(step=0))
    with fixed_noise(9):
        levels = model.infer(images(), samples=8)
    log_likelihood = model.log_likelihood(images(), levels[0].z).view(8, -1)
    torch.testing.assert_close(losses.terms["bound"], math.log(8) - log_likelihood.logsumexp(0))


@BOTH
def test_fine_tuning_takes_several_samples_after_so_many_updates(kind: Kind) -> None:
    tuned = livelier(build(kind, importance_samples=8, importance_from=100)).eval()
    for step, samples in ((99, 1), (100, 8)):
        like = build(kind, importance_samples=samples).eval()
        like.load_state_dict(tuned.state_dict())
        losses = []
        for model in (tuned, like):
            with fixed_noise(9):
                losses.append(model.loss(batch(step=step)).total)
        torch.testing.assert_close(*losses)


def test_gaussian_pixels_have_their_own_variance() -> None:
    model = build(LadderVAE, likelihood="gaussian").eval()
    z = torch.randn(6, 5)
    mean, raw = model.decoder(z).chunk(2, dim=1)
    scale = (nn.functional.softplus(raw) + 1e-5 + 1 / 255**2).sqrt()
    expected = torch.distributions.Normal(mean, scale).log_prob(images()).sum((1, 2, 3))
    torch.testing.assert_close(model.log_likelihood(images(), z), expected)


@BOTH
@pytest.mark.parametrize("likelihood", ["bernoulli", "gaussian"])
def test_codes_decode_to_the_reconstruction(kind: Kind, likelihood: str) -> None:
    model = livelier(build(kind, likelihood=likelihood))
    codes = model.represent(images())
    assert codes.shape == (6, 12)
    torch.testing.assert_close(
        model.decode(codes), model.reconstruct(images()), rtol=1e-4, atol=1e-5
    )
    assert model.latent_layers == (1,) * 5 + (2,) * 4 + (3,) * 3


@BOTH
def test_codes_of_pictures_decode_to_their_reconstructions(kind: Kind) -> None:
    """Arrays are answered by arrays, which `decode` accepts like tensors; so is a single image."""
    model = livelier(build(kind))
    arrays = (255 * images().permute(0, 2, 3, 1)).byte().numpy()
    expected = model.reconstruct(images())
    codes = model.represent(arrays)
    assert isinstance(codes, np.ndarray)
    for of_all in (codes, codes.astype(np.float64), codes.tolist(), torch.from_numpy(codes)):
        torch.testing.assert_close(model.decode(of_all), expected, rtol=1e-4, atol=1e-5)
    alone = model.decode(model.represent(arrays[0]))
    torch.testing.assert_close(alone, expected[:1], rtol=1e-4, atol=1e-5)
    lowest = model.represent(arrays, layer=1)
    torch.testing.assert_close(model.decode(lowest, layer=1), expected, rtol=1e-4, atol=1e-5)


@BOTH
def test_wrong_codes_layers_and_counts_are_refused(kind: Kind) -> None:
    model = build(kind)
    for codes in (np.zeros((3, 11)), torch.zeros(3, 13), np.zeros((1, 3, 12)), 0.5):
        with pytest.raises(UsageError, match=r"give \(n, 12\)"):
            model.decode(codes)
    with pytest.raises(UsageError, match=r"latents of layer 2 \(3, 12\): give \(n, 4\)"):
        model.decode(np.zeros((3, 12)), layer=2)
    with pytest.raises(UsageError, match="array or tensor of numbers"):
        model.decode([["high"]])
    for n in (0, -1, 2.5):
        with pytest.raises(UsageError, match="1 or more"):
            model.sample(n)
    assert model.represent(images(), layer=np.int64(2)).shape == (6, 4)
    with pytest.raises(UsageError, match="choose from 1"):
        model.represent(images(), layer=np.int64(4))


@BOTH
def test_codes_have_the_divergences_of_their_layers(kind: Kind) -> None:
    model = livelier(build(kind)).eval()
    q = model.posterior(images())
    kl = kl_to_standard_normal(q.mean, q.log_variance)
    levels = model.infer(images(), at_mean=True)
    for i, level in enumerate(levels, start=1):
        columns = [latent == i for latent in model.latent_layers]
        expected = torch.distributions.kl_divergence(
            *(
                torch.distributions.Normal(g.mean, (0.5 * g.log_variance).exp())
                for g in (level.q, level.p)
            )
        )
        torch.testing.assert_close(kl[:, columns], expected, rtol=1e-3, atol=1e-5)
        torch.testing.assert_close(model.represent(images(), layer=i), level.q.mean)
    torch.testing.assert_close(q.mean[:, -3:], levels[-1].q.mean)


def test_what_units_carry_adds_up_to_the_ladders_layers() -> None:
    """With the same noise, so that both follow the same draws."""
    model = livelier(build(LadderVAE)).eval()
    with fixed_noise(5), torch.no_grad():
        kl = model.kl_per_latent(images())
    with fixed_noise(5), torch.no_grad():
        terms = model.loss(batch()).terms
    for i in (1, 2, 3):
        columns = [latent == i for latent in model.latent_layers]
        torch.testing.assert_close(kl[:, columns].sum(1), terms[f"kl_{i}"])


@BOTH
def test_moving_a_unit_of_any_layer_changes_the_image(kind: Kind) -> None:
    model = livelier(build(kind))
    codes = model.represent(images(1))
    for latent in range(codes.shape[1]):
        moved = codes.clone()
        moved[:, latent] += 1
        assert not torch.allclose(model.decode(moved), model.decode(codes), atol=1e-7)


@BOTH
def test_images_can_be_drawn_from_any_layer_down(kind: Kind) -> None:
    model = livelier(build(kind))
    assert model.sample(4).shape == (4, 1, 12, 12)
    for layer, size in ((1, 5), (2, 4), (3, 3)):
        z = torch.randn(1, size)
        sampled = model.sample(4, layer=layer, latents=z)
        differ = not torch.equal(sampled[:1].expand_as(sampled), sampled)
        assert differ == (layer > 1)
        assert model.decode(z, layer=layer).shape == (1, 1, 12, 12)
    z = torch.randn(1, 5)
    torch.testing.assert_close(model.sample(1, layer=1, latents=z), model.decode(z, layer=1))


def test_drawn_latents_have_the_prior() -> None:
    """Whitened by the prior of the layer above, samples are standard normal: by moments."""
    model, n = livelier(build(LadderVAE)).eval(), 20_000
    seen: list[Tensor] = []
    hook = model.decoder.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    z = torch.full((1, 4), 0.3)
    with fixed_noise(10):
        model.sample(n, layer=2, latents=z)
    hook.remove()
    p = model.priors[0](z)
    e = (seen[0] - p.mean) / torch.exp(0.5 * p.log_variance)
    assert (e.mean(0).abs() < 4.5 / n**0.5).all()
    assert ((e.var(0) - 1).abs() < 4.5 * (2 / n) ** 0.5).all()


def test_codes_are_taken_as_they_are_told() -> None:
    """Latents from `represent`, as arrays; wrong shapes are refused."""
    model = livelier(build(LadderVAE))
    arrays = np.random.default_rng(0).integers(0, 256, (4, 12, 12, 1), np.uint8)
    top = model.represent(arrays, layer=3)
    assert isinstance(top, np.ndarray)
    assert model.sample(4, layer=3, latents=top).shape == (4, 1, 12, 12)
    assert model.kl_per_latent(arrays).shape == (4, 12)
    for codes, needed in (
        (top[:3], r"\(4, 3\), or \(1, 3\)"),
        (model.represent(arrays), "layer 3"),
    ):
        with pytest.raises(UsageError, match=needed):
            model.sample(4, latents=codes)


@pytest.mark.parametrize("layer", [0, 4, "3", 1.0])
def test_layers_that_are_not_there_are_refused(layer: Any) -> None:
    model = build(LadderVAE)
    with pytest.raises(UsageError, match="choose from 1, next to the image, to 3"):
        model.represent(images(), layer=layer)
    with pytest.raises(UsageError, match="give the latents of that layer"):
        model.sample(3, layer=2)
    with pytest.raises(UsageError, match="width of the network below each"):
        build(LadderVAE, hidden=(8,))
    with pytest.raises(UsageError, match="at least one layer"):
        build(LadderVAE, layers=())


@BOTH
def test_asking_changes_nothing(kind: Kind) -> None:
    """Normalisation's running statistics and the mode are as before, also while training."""
    model = build(kind, batch_norm=True).train()
    model.loss(batch())
    before = {name: value.clone() for name, value in model.state_dict().items()}
    codes = model.represent(images())
    model.decode(codes)
    model.sample(3)
    model.log_weights(images(), samples=2)
    assert model.training
    assert all(torch.equal(model.state_dict()[name], value) for name, value in before.items())
    assert set(capabilities(model)) >= {"decodes", "generates", "scores"}


def random_data() -> Arrays:
    rng = np.random.default_rng(0)
    data = Arrays(images=rng.integers(0, 256, (60, *SHAPE), dtype=np.uint8))
    data.stochastic = True
    return data


def test_a_normalised_ladder_on_drawn_pixels_resumes_to_the_bit(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "steps": 12,
        "batch_size": 8,
        "save_every": 4,
        "device": "cpu",
        "threads": 1,
    }

    def train(out: Path, stop_at: int | None = None) -> None:
        def stop(model: Any, step: int) -> None:
            if step == stop_at:
                raise KeyboardInterrupt

        fit(build(LadderVAE, warm_up_steps=6), random_data(), out=out, on_save=stop, **options)

    train(tmp_path / "whole")
    with pytest.raises((KeyboardInterrupt, Interrupted)):
        train(tmp_path / "halves", stop_at=8)
    train(tmp_path / "halves")
    whole, halves = (load_run(tmp_path / name, which="last") for name in ("whole", "halves"))
    assert whole.metrics == halves.metrics
    ours, theirs = whole.model.state_dict(), halves.model.state_dict()
    assert any("running_mean" in name for name in ours)
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)

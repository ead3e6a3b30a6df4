"""InfoGAN against its equations."""

import math

import pytest
import torch
from torch.distributions import Categorical, Normal

from disentwine.core.model import Batch
from disentwine.core.random import fixed_noise
from disentwine.losses.adversarial import PENALTY_INTERVAL
from disentwine.models import InfoGAN


def build(**options: int) -> InfoGAN:
    torch.manual_seed(0)
    return InfoGAN(image_shape=(16, 16, 1), latent=3, noise=2, **options)


@pytest.mark.parametrize("classes", [0, 4])
def test_codes_are_drawn_from_their_prior(classes: int) -> None:
    """Means within 4.5 standard errors: uniform numbers have variance 1/3, classes are all alike."""
    n = 20_000
    with fixed_noise(0):
        c, z = build(classes=classes).sample_inputs(n)
    assert c.shape == (n, 3 + classes)
    assert z.shape == (n, 2)
    numbers = c[:, :3]
    assert numbers.abs().max() <= 1
    assert (numbers.mean(0).abs() < 4.5 / math.sqrt(3 * n)).all()
    if classes:
        assert torch.equal(c[:, 3:].sum(1), torch.ones(n))
        share = 1 / classes
        error = (c[:, 3:].mean(0) - share).abs()
        assert (error < 4.5 * math.sqrt(share * (1 - share) / n)).all()


@pytest.mark.parametrize("classes", [0, 4])
def test_information_is_the_papers_bound(classes: int) -> None:
    model = build(classes=classes)
    with fixed_noise(0):
        c, z = model.sample_inputs(6)
    x = model.generate(c, z)
    q = model.Q(x)
    scale = model.log_scale.exp()
    expected = Normal(q[:, :3], scale).log_prob(c[:, :3]).sum(1) + 3 * math.log(2)
    if classes:
        chosen = c[:, 3:].argmax(1)
        expected = expected + Categorical(logits=q[:, 3:]).log_prob(chosen) + math.log(classes)
    torch.testing.assert_close(model.information(c, x), expected)


def test_generator_and_q_gain_from_information() -> None:
    model = build(classes=2)
    batch = Batch(torch.rand(4, 1, 16, 16), torch.zeros(4, 0))
    with fixed_noise(0):
        losses = model.loss(batch)
    with fixed_noise(0):
        c, z = model.sample_inputs(4)
    x = model.generate(c, z)
    D = model.discriminator(x)[:, 0].sigmoid()
    torch.testing.assert_close(losses.total, (-D.log() - model.information(c, x)).mean())


def test_an_image_is_painted_again_from_its_code() -> None:
    model = build(classes=2)
    x = torch.rand(4, 1, 16, 16)
    codes = model.represent(x)
    torch.testing.assert_close(codes[:, 3:].sum(1), torch.ones(4))
    assert torch.equal(model.reconstruct(x), model.decode(codes))
    with torch.no_grad():
        assert torch.equal(model.decode(codes), model.generate(codes, torch.zeros(4, 2)))


@pytest.mark.parametrize(("step", "slopes"), [(0, PENALTY_INTERVAL), (1, 0)])
def test_the_discriminator_tells_true_images_from_painted_ones(step: int, slopes: int) -> None:
    model = build(slope_weight=3)
    batch = Batch(torch.rand(4, 1, 16, 16), torch.zeros(4, 0), step=step)
    with fixed_noise(0):
        loss = model.discriminator_loss(batch).total
    with fixed_noise(0):
        fake = model.generate(*model.sample_inputs(4))
    x = batch.x.clone().requires_grad_()
    logits = model.discriminator(x)[:, 0]
    (slope,) = torch.autograd.grad(logits.sum(), x)
    cross_entropy = -0.5 * (
        logits.sigmoid().log() + (1 - model.discriminator(fake)[:, 0].sigmoid()).log()
    )
    penalty = 3 * slopes * 0.5 * slope.square().sum((1, 2, 3))
    torch.testing.assert_close(loss, (cross_entropy + penalty).mean())


def test_information_is_weighed() -> None:
    model = build(information_weight=5)
    with fixed_noise(0):
        losses = model.loss(Batch(torch.rand(4, 1, 16, 16), torch.zeros(4, 0)))
    expected = losses.terms["generator"] + 5 * losses.terms["information"]
    torch.testing.assert_close(losses.total, expected.mean())

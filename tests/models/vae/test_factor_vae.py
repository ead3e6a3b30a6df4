"""FactorVAE against its equations."""

import math

import torch

from disentwine.core.model import Batch
from disentwine.core.random import fixed_noise
from disentwine.losses.adversarial import permute_dimensions
from disentwine.models import VAE, FactorVAE

SHAPE = (16, 16, 1)


def batch(n: int = 8) -> Batch:
    with fixed_noise(1):
        return Batch(torch.rand(n, 1, 16, 16), torch.zeros(n, 0))


def build(**options: object) -> FactorVAE:
    torch.manual_seed(0)
    return FactorVAE(image_shape=SHAPE, latent=4, discriminator_units=16, **options)  # type: ignore[arg-type]


def test_without_gamma_it_is_a_vae() -> None:
    torch.manual_seed(0)
    vae, model = VAE(image_shape=SHAPE, latent=4), build(gamma=0.0)
    totals = []
    for each in (vae, model):
        with fixed_noise(2):
            totals.append(each.loss(batch()).total)
    torch.testing.assert_close(*totals)


def test_the_penalty_is_the_log_ratio_of_the_discriminator() -> None:
    model = build(gamma=7.0)
    with fixed_noise(2):
        losses = model.loss(batch())
    with fixed_noise(2):
        z = model.posterior(batch().x).sample()
    D = model.discriminator(z)[:, 0].sigmoid()
    torch.testing.assert_close(losses.terms["total_correlation"], (D / (1 - D)).log())
    others = losses.terms["reconstruction"].mean() + losses.terms["kl"].mean()
    expected = others + 7 * losses.terms["total_correlation"].mean()
    torch.testing.assert_close(losses.total, expected)


def test_the_discriminator_tells_codes_from_permuted_codes() -> None:
    model = build()
    with fixed_noise(2):
        loss = model.discriminator_loss(batch()).total
    with fixed_noise(2):
        z = model.posterior(batch().x).sample()
        permuted = permute_dimensions(z)
    D, D_permuted = (model.discriminate(codes).sigmoid() for codes in (z, permuted))
    expected = -0.5 * (D.log().mean() + (1 - D_permuted).log().mean())
    torch.testing.assert_close(loss, expected)


def test_the_discriminator_has_the_papers_size() -> None:
    layers = [
        layer for layer in FactorVAE(image_shape=SHAPE).discriminator if hasattr(layer, "weight")
    ]
    assert [layer.out_features for layer in layers] == [1000] * 6 + [1]


def test_a_trained_discriminator_finds_codes_that_agree() -> None:
    """Codes that repeat each other are distinguished from permuted ones; independent ones are not."""
    found = {}
    for name in ("repeated", "independent"):
        model = build()
        adam = torch.optim.Adam(model.discriminator.parameters(), lr=3e-3)
        with fixed_noise(3):
            for _ in range(200):
                z = torch.randn(256, 4)
                z = z[:, :1].expand(-1, 4) + 0.1 * z if name == "repeated" else z
                logits = model.discriminate(z), model.discriminate(permute_dimensions(z))
                loss = torch.nn.functional.softplus(torch.cat([-logits[0], logits[1]])).mean()
                adam.zero_grad()
                loss.backward()
                adam.step()
            found[name] = model.discriminate(z).mean().item()
    assert found["repeated"] > 1
    # The estimate of a difference that is not there stays near 0; its noise is far below that of log 2.
    assert abs(found["independent"]) < math.log(2) / 4

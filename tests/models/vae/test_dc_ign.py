"""DC-IGN against its equations."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from disentwine.data import Arrays, Pendulum
from disentwine.errors import DataError
from disentwine.models import DCIGN, VAE
from disentwine.nn.encoders import DiagonalGaussian

from .helpers import batch, build, losses

ONE_VARIES = torch.stack([torch.arange(8.0), torch.full((8,), 5.0), torch.zeros(8)], dim=1)


def test_dc_ign_holds_what_does_not_vary() -> None:
    model = build(DCIGN, varied=(0, 2), dimensions=2)
    assert model.latent == 4
    assert model.fixed(ONE_VARIES).tolist() == [False, False, True, True]
    assert not model.fixed(torch.rand(8, 3)).any()
    unknown = torch.full((8, 3), torch.nan)
    assert not model.fixed(unknown).any()


def test_dc_ign_decodes_held_codes_at_their_mean_and_pulls_them_there() -> None:
    """The gradients that section 3.1 writes into the network, from the terms' own."""
    eta = 0.3
    model = build(DCIGN, varied=(0, 1, 2), invariance=eta)
    given = batch(ONE_VARIES)
    torch.manual_seed(4)
    z = torch.randn(8, 3, requires_grad=True)
    model.posterior = lambda x: DiagonalGaussian(z, torch.full((8, 3), -200.0))

    clamped = torch.cat([z[:, :1], z[:, 1:].mean(0).expand(8, 2)], dim=1).detach().requires_grad_()
    reconstruction = -model.reconstruction_log_likelihood(given.x, clamped)
    reconstruction.mean().backward()
    got = losses(model, given)
    torch.testing.assert_close(got.terms["reconstruction"], reconstruction)

    (got.total - got.terms["kl"].mean()).backward()
    assert clamped.grad is not None
    assert z.grad is not None
    torch.testing.assert_close(z.grad[:, 0], clamped.grad[:, 0])
    pull = eta * (z - z.mean(0)).detach() / len(z)
    torch.testing.assert_close(z.grad[:, 1:], pull[:, 1:])


def test_dc_ign_is_a_vae_where_everything_varies() -> None:
    given = batch(torch.rand(8, 3))
    vae = losses(build(VAE, latent=3), given)
    model = losses(build(DCIGN, varied=(0, 1, 2)), given)
    assert torch.equal(model.total, vae.total)


def test_dc_ign_varies_causes_only() -> None:
    pendulum = Pendulum(size=32)
    model = DCIGN.for_data(pendulum)
    assert [pendulum.names[i] for i in model.varied] == ["pendulum_angle", "light_angle"]
    with pytest.raises(DataError, match="names no factors"):
        DCIGN.for_data(Arrays(images=np.zeros((60, 16, 16, 1), np.uint8)))

"""Every network takes every image size, and mirrors it."""

import pytest
import torch

from disentwine.nn.encoders import DECODERS, ENCODERS, CropTo, PadToMultiple


@pytest.mark.parametrize("network", list(ENCODERS))
@pytest.mark.parametrize("shape", [(64, 64, 3), (28, 28, 1), (33, 50, 4), (1, 1, 1)])
def test_shapes(network: str, shape: tuple[int, int, int]) -> None:
    height, width, channels = shape
    x = torch.rand(2, channels, height, width)
    features = ENCODERS[network](shape, 6)(x)  # type: ignore[index]
    assert features.shape == (2, 6)
    assert DECODERS[network](6, shape)(features).shape == x.shape  # type: ignore[index]


@pytest.mark.parametrize("network", list(ENCODERS))
def test_every_pixel_reaches_the_code_and_is_reached_by_it(network: str) -> None:
    torch.manual_seed(0)
    shape = (30, 27, 2)
    x = torch.rand(1, 2, 30, 27, requires_grad=True)
    ENCODERS[network](shape, 32)(x).square().sum().backward()  # type: ignore[index]
    assert x.grad is not None
    assert (x.grad != 0).float().mean() > 0.95
    decoder = DECODERS[network](3, shape)  # type: ignore[index]
    assert (decoder(torch.ones(1, 3)) != decoder(-torch.ones(1, 3))).all()


def test_cropping_undoes_padding() -> None:
    x = torch.rand(2, 3, 28, 20)
    assert torch.equal(CropTo(28, 20)(PadToMultiple(16)(x)), x)

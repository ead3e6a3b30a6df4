"""Pictures go in and come out as people hold them."""

import numpy as np
import pytest
import torch

from disentwine.errors import UsageError
from disentwine.models import VAE
from disentwine.nn.images import CHUNK, to_uint8, to_unit_range


@pytest.fixture(scope="module")
def model() -> VAE:
    torch.manual_seed(0)
    return VAE(image_shape=(16, 12, 3), latent=4)


def random_images(n: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (n, 16, 12, 3), dtype=np.uint8)


def test_conversion_is_exact_both_ways() -> None:
    x = torch.from_numpy(random_images(5))
    assert torch.equal(to_uint8(to_unit_range(x)), x)


def test_conversion_is_channels_last() -> None:
    x = to_unit_range(torch.from_numpy(random_images(5)))
    assert x.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("shape", [(12, 16, 3), (16, 12, 1), (2, 32, 32, 3)])
def test_pictures_of_another_shape_are_refused(model: VAE, shape: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="must be 16 x 12 x 3"):
        model.represent(np.zeros(shape, np.uint8))


def test_pictures_may_be_read_only(model: VAE, recwarn: pytest.WarningsRecorder) -> None:
    kept = random_images(2)
    kept.flags.writeable = False
    assert model.represent(kept).shape == (2, 4)
    assert not recwarn.list


def test_one_picture_is_answered_with_one(model: VAE) -> None:
    stack = random_images(3)
    assert model.reconstruct(stack[0]).shape == (16, 12, 3)
    assert model.reconstruct(stack[0]).dtype == np.uint8
    np.testing.assert_allclose(
        model.represent(stack)[0], model.represent(stack[0]), rtol=1e-5, atol=1e-6
    )


def test_stacks_larger_than_a_chunk_keep_their_order(model: VAE) -> None:
    stack = random_images(CHUNK + 3)
    codes = model.represent(stack)
    assert codes.shape == (CHUNK + 3, 4)
    np.testing.assert_allclose(codes[-3:], model.represent(stack[-3:]), rtol=1e-5, atol=1e-6)


def test_training_mode_is_restored_and_no_gradient_is_kept(model: VAE) -> None:
    model.train()
    codes = model.represent(torch.rand(2, 3, 16, 12))
    assert model.training
    assert not codes.requires_grad


@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros((2, 16, 12, 3)),
        np.zeros((16, 12), np.uint8),
        np.zeros((0, 16, 12, 3), np.uint8),
    ],
    ids=["float array", "no channels", "empty"],
)
def test_what_is_no_picture_is_refused(model: VAE, wrong: np.ndarray) -> None:
    with pytest.raises(UsageError, match="images"):
        model.represent(wrong)


@pytest.mark.parametrize(
    ("shape", "hint"),
    [((3, 32, 32), "got torch.float32 of shape"), ((2, 3, 32, 16), "32 x 16 x 3")],
)
def test_tensors_of_another_form_are_refused(shape, hint):
    model = VAE(image_shape=(32, 32, 3))
    with pytest.raises(UsageError, match=hint):
        model.represent(torch.zeros(shape))


def test_tensors_that_were_not_brought_to_the_unit_range_are_refused() -> None:
    model = VAE(image_shape=(16, 16, 1), latent=2)
    with pytest.raises(UsageError, match="from 0 to 255"):
        model.represent(torch.linspace(0, 255, 256).view(1, 1, 16, 16))
    with pytest.raises(UsageError, match="got NoneType"):
        model.represent(None)
    assert model.represent(torch.rand(2, 1, 16, 16).double()).shape == (2, 2)

"""From pixels to features and back; features of what differs between images."""

import torch
from torch import nn

from disentwine.nn.ends import Centred, features_to_pixels, pixels_to_features
from disentwine.nn.ladder import BatchNorm
from disentwine.nn.modes import evaluating


def centred(network: str = "compact") -> Centred:
    torch.manual_seed(0)
    return Centred(pixels_to_features(network, (16, 16, 1), 8)[0], (16, 16, 1))  # type: ignore[arg-type]


def test_ends_meet() -> None:
    for network, width in (("mlp", 16 * 20 * 3), ("compact", 32), ("standard", 32)):
        front, features = pixels_to_features(network, (16, 20, 3), 32)  # type: ignore[arg-type]
        x = torch.rand(2, 3, 16, 20)
        assert features == width
        assert front(x).shape == (2, width)
        assert features_to_pixels(network, 32, (16, 20, 3))(torch.zeros(2, 32)).shape == x.shape  # type: ignore[arg-type]


def test_normalisation_does_not_notice_in_training() -> None:
    front, norm = centred(), BatchNorm(8, affine=False)
    x = torch.rand(32, 1, 16, 16)
    plain = nn.Sequential(front.network, norm)(x)
    torch.testing.assert_close(norm(front(x)), plain, rtol=1e-3, atol=1e-3)


def test_the_mean_image_is_that_of_all_first_batches_and_kept_in_evaluation() -> None:
    front = centred("mlp")
    batches = torch.rand(5, 32, 1, 16, 16)
    for x in batches:
        front(x)
    torch.testing.assert_close(front.mean, batches.mean((0, 1))[None])
    x = torch.rand(3, 1, 16, 16)
    with evaluating(front):
        torch.testing.assert_close(front(x), (x - front.mean).flatten(1))
        torch.testing.assert_close(front(x[:1]), front(x)[:1])
    single = front(x[:1])
    torch.testing.assert_close(single, (x[:1] - front.mean).flatten(1))
    assert front.batches == 5


def test_the_mean_of_features_hardly_moves_when_the_network_does() -> None:
    """On a white ground: an update of the weights shifts the mean features by little of their spread."""
    x = torch.ones(64, 1, 16, 16)
    for i in range(64):
        x[i, 0, i % 15 : i % 15 + 2, (7 * i) % 15 : (7 * i) % 15 + 2] = 0

    def shift(network: nn.Module, front: Centred) -> float:
        before = network(x)
        kept = {name: value.clone() for name, value in front.state_dict().items()}
        with torch.no_grad():
            for parameter in front.parameters():
                parameter.add_(0.002)
        after = network(x)
        front.load_state_dict(kept)
        return ((after.mean(0) - before.mean(0)).abs() / before.std(0)).mean().item()

    front = centred()
    assert shift(front, front) < 0.1 * shift(front.network, front)

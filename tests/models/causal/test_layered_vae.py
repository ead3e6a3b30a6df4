"""The layered CausalVAE: effects follow their causes, and layers see their own concepts alone."""

import numpy as np
import pytest
import torch

from disentwine import fit
from disentwine.causal.concepts import Concept, ConceptSpec
from disentwine.causal.graph import Graph
from disentwine.core.model import Batch
from disentwine.data import Arrays, Pendulum
from disentwine.errors import UsageError
from disentwine.models import LayeredCausalVAE
from disentwine.models.causal.layered_vae import PRIOR_WIDTH
from disentwine.models.causal.pixel_attribution import Composition
from disentwine.nn.layered_decoder import (
    EdgeDecoder,
    FieldDecoder,
    LayeredDecoder,
    PixelwiseDecoder,
    fourier_features,
)

NAMES = ("angle", "light", "length", "position")
EDGES = tuple((cause, effect) for cause in NAMES[:2] for effect in NAMES[2:])
GROUPS = ((0,), (1,), (2, 3))


@pytest.fixture(params=["encoder", "least-squares"])
def model(request: pytest.FixtureRequest) -> LayeredCausalVAE:
    torch.manual_seed(0)
    return LayeredCausalVAE(
        image_shape=(16, 16, 3),
        concept_spec=ConceptSpec(
            tuple(
                Concept(name, mean=mean, std=std)
                for name, mean, std in zip(
                    NAMES, (0.0, 90.0, 5.0, 10.0), (20.0, 20.0, 2.0, 3.0), strict=True
                )
            )
        ),
        graph=Graph.from_edges(NAMES, EDGES),
        composition=Composition(GROUPS, ((0, 0, 16, 16),) * 3),
        abduction=request.param,
    ).eval()


@pytest.fixture
def x() -> torch.Tensor:
    return torch.rand(5, 3, 16, 16, generator=torch.Generator().manual_seed(1))


def test_what_is_not_caused_does_not_move(model: LayeredCausalVAE, x: torch.Tensor) -> None:
    with torch.no_grad():
        z = model.abduct(x)
        for i, name in enumerate(NAMES):
            after = model.propagate(z, {i: torch.full((5,), 1.3)})
            follows = {name, *model.graph.descendants(name)}
            for j, other in enumerate(NAMES):
                assert torch.equal(z[:, j], after[:, j]) == (other not in follows)
            assert (after[:, i] == 1.3).all()


def test_effects_keep_their_own_noise(model: LayeredCausalVAE, x: torch.Tensor) -> None:
    with torch.no_grad():
        z = model.abduct(x)
        after = model.propagate(z, {0: torch.full((5,), 0.7)})
        for i in (2, 3):
            before_noise = z[:, i] - model.mechanism(i, z)
            torch.testing.assert_close(after[:, i] - model.mechanism(i, after), before_noise)


def test_doing_what_was_already_so_gives_the_reconstruction(
    model: LayeredCausalVAE, x: torch.Tensor
) -> None:
    old = model.concepts(x)
    for i, name in enumerate(NAMES):
        same = model.do(x, {name: old[:, i].numpy()})
        torch.testing.assert_close(same, model.reconstruct(x), atol=1e-6, rtol=0)


def test_a_layer_sees_its_own_concepts_alone() -> None:
    torch.manual_seed(0)
    decoder = LayeredDecoder(list(GROUPS), image_shape=(8, 8, 3))
    z = torch.randn(3, 4)
    moved = z.clone()
    moved[:, 1] += 1
    for group, component in zip(decoder.concept_groups, decoder.components, strict=True):
        same = torch.equal(component(z[:, group]), component(moved[:, group]))
        assert same == (1 not in group)


def test_directions_add_up() -> None:
    """Along its two directions a painter's logits are a sum, so that they hold apart as well."""
    torch.manual_seed(0)
    painter = PixelwiseDecoder(concepts=2, image_shape=(4, 4, 1))
    s, t = painter.directions.detach()

    def logits(a: float, b: float) -> torch.Tensor:
        return painter((a * s + b * t)[None])

    with torch.no_grad():
        both = logits(0.8, -0.5) - logits(0, 0)
        apart = logits(0.8, 0) + logits(0, -0.5) - 2 * logits(0, 0)
    torch.testing.assert_close(both, apart, atol=1e-4, rtol=1e-3)


def test_an_edge_is_the_same_wherever_it_is() -> None:
    """Pixels share the edges: a concept that shifts them by a pixel shifts the picture by one."""
    torch.manual_seed(0)
    painter = EdgeDecoder(concepts=1, image_shape=(4, 16, 1), edges=5)
    with torch.no_grad():
        painter.shifts.copy_(painter.normals[:1] / 8)  # a pixel is 1/8 wide
        here, there = painter(torch.zeros(1, 1)), painter(torch.ones(1, 1))
    torch.testing.assert_close(there[..., 1:], here[..., :-1])


def test_a_field_is_one_function_of_place_and_concepts() -> None:
    """Every pixel is what the shared network says of its place in frames that concepts move and stretch,
    whichever image it belongs to."""
    torch.manual_seed(0)
    painter = FieldDecoder(concepts=2, image_shape=(4, 6, 1), frames=2)
    z = torch.randn(3, 2)
    with torch.no_grad():
        painted = painter(z)
        shift, stretch = painter.frames(z).chunk(2, dim=1)
        place = torch.tensor([2 * (5 - 3) / 3, 2 * (2 - 2) / 3] * 2)  # in both frames
        seen = fourier_features(stretch.exp() * (place - shift), painter.frequencies)
        expected = painter.out(painter.of_places(seen) + painter.of_concepts(z))
    torch.testing.assert_close(painted[:, :, 2, 5], expected)


def test_a_field_that_sees_its_frame_alone_moves_with_it() -> None:
    """Where concepts shift the frame by a pixel, the picture is shifted by a pixel."""
    torch.manual_seed(0)
    painter = FieldDecoder(concepts=1, image_shape=(5, 8, 1), frames=1)
    with torch.no_grad():
        painter.of_concepts.weight.zero_()
        painter.frames.weight.zero_()
        painter.frames.weight[0, 0] = 2 / 4  # a pixel in x, for places from -2 to 2
        still, moved = painter(torch.tensor([[0.0], [1.0]]))
    torch.testing.assert_close(moved[:, :, 1:], still[:, :, :-1])


def test_noise_and_codes_are_the_same_in_other_words(
    model: LayeredCausalVAE, x: torch.Tensor
) -> None:
    z = torch.randn(5, 4, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        noise = model.noise_of(z)
        torch.testing.assert_close(noise[:, :2], z[:, :2])
        torch.testing.assert_close(model.concepts_of_noise(noise), z)


def test_a_misspelt_abduction_is_refused(model: LayeredCausalVAE, x: torch.Tensor) -> None:
    model.abduction = "leastsquares"  # type: ignore[assignment]
    with pytest.raises(UsageError, match="'encoder' or 'least-squares'"):
        model.do(x, light=60)


def test_least_squares_find_the_concepts_that_were_painted(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the network reads is a little off: the causes in the picture are found all the same."""
    pendulum = Pendulum(size=32)
    torch.manual_seed(0)
    model = LayeredCausalVAE.for_data(pendulum, abduction="least-squares")
    model = fit(model, pendulum, steps=60, learning_rate=0.003, progress=False)
    labels = torch.tensor(pendulum.factors[:40], dtype=torch.float32)
    with torch.no_grad():
        noise = model.standardise(labels)
        noise[:, 2:] = 0
        z = model.concepts_of_noise(noise)
        painted = model.decode_latents(z)
        wrong = model.concepts_of_noise(noise + 0.05 * torch.randn_like(noise))
        monkeypatch.setattr(model, "encode", lambda x: wrong)
        model.encoder_error.fill_(0.05**2)
        model.mechanism_error.fill_(1e6)  # what is read is kept
        found = model.abduct(painted)
    before, after = ((read - z)[:, :2].abs().median() for read in (wrong, found))
    assert after < 0.2 * before


def test_where_a_picture_says_nothing_noise_is_as_likely_as_among_labels(
    model: LayeredCausalVAE, x: torch.Tensor
) -> None:
    """Then what was read is drawn towards no noise by its variance over that and its error's."""
    model.abduction = "least-squares"
    with torch.no_grad():
        model.log_scale.fill_(20.0)  # pixels count for nothing
        of_labels = model.noise_of(model.labels.rows).square().mean(0)
        model.encoder_error.copy_(
            of_labels / PRIOR_WIDTH**2
        )  # as large as the noise, so half is kept
        model.mechanism_error.fill_(1e6)
        read = model.noise_of(model.merge(model.encode(x)))
        torch.testing.assert_close(
            model.noise_of(model.abduct(x)), 0.5 * read, rtol=1e-3, atol=1e-4
        )


def test_painters_paint_in_their_boxes_alone() -> None:
    torch.manual_seed(0)
    boxes = [(0, 0, 4, 8), (4, 0, 8, 8)]
    decoder = LayeredDecoder([(0,), (1, 2)], image_shape=(8, 8, 3), group_boxes=boxes)
    z = torch.randn(2, 3)
    moved = z + torch.tensor([1.0, 0.0, 0.0])
    with torch.no_grad():
        before, after = decoder(z), decoder(moved)
    assert torch.equal(before[..., 4:, :], after[..., 4:, :])
    assert not torch.equal(before[..., :4, :], after[..., :4, :])


def test_what_is_read_and_what_causes_say_are_weighed_by_precision(
    model: LayeredCausalVAE, x: torch.Tensor
) -> None:
    with torch.no_grad():
        z = model.posterior(x).mean
        model.encoder_error.fill_(3.0)
        model.mechanism_error.fill_(1.0)
        merged = model.merge(z)
        assert torch.equal(merged[:, :2], z[:, :2])
        for i in (2, 3):
            expected = 0.25 * z[:, i] + 0.75 * model.mechanism(i, merged)
            torch.testing.assert_close(merged[:, i], expected)


def test_errors_are_noted_while_training_only(model: LayeredCausalVAE, x: torch.Tensor) -> None:
    u = torch.tensor([[20.0, 90.0, 5.0, 10.0]]).repeat(5, 1)
    before = model.encoder_error.clone()
    model.loss(Batch(x, u))
    assert torch.equal(model.encoder_error, before)
    model.train().loss(Batch(x, u))
    with torch.no_grad():
        missed = (model.posterior(x).mean - model.standardise(u)).square().mean(0)
    torch.testing.assert_close(model.encoder_error, before.lerp(missed, 0.01))


def test_what_causes_say_is_right_on_average_whatever_the_density_of_noise(
    model: LayeredCausalVAE, x: torch.Tensor
) -> None:
    """A mechanism and the mean of its noise could trade places: running means keep the latter apart."""
    u = torch.randn(5, 4) * model.scale + model.mean
    with torch.no_grad():
        for _ in range(3000):
            model.update_errors(torch.randn(5, 4), model.standardise(u), torch.ones(5).bool())
        known = model.standardise(u)
        for i in model.causes:
            assert (known[:, i] - model.mechanism(i, known)).mean().abs() < 1e-4


def test_missing_labels_are_not_learnt_from(model: LayeredCausalVAE, x: torch.Tensor) -> None:
    u = torch.full((5, 4), torch.nan)
    terms = model.loss(Batch(x, u)).terms
    assert all(term.isfinite().all() for term in terms.values())
    assert (terms["mechanisms"] == 0).all()


def test_graph_groups_and_background_are_learnt_from_the_data() -> None:
    pendulum = Pendulum(size=32)
    model = LayeredCausalVAE.for_data(pendulum)
    assert model.composition.concept_groups == ((0,), (1,), (2, 3))
    assert set(model.graph.edges) == set(pendulum.graph.edges)
    painted = model.decoder.background.detach().sigmoid().permute(1, 2, 0).numpy()
    median = np.median(pendulum.images[pendulum.split["train"]], axis=0) / 255
    assert np.abs(painted - np.clip(median, 0.01, 0.99)).mean() < 0.01


def test_a_hue_that_changes_at_the_same_brightness_is_painted() -> None:
    u = np.random.default_rng(0).uniform(size=(300, 2))
    images = np.full((300, 32, 32, 3), 255, np.uint8)
    images[:, 4:12, 4:12] = (u[:, :1] * 255)[:, None, None]
    images[:, 20:28, 20:28, 0] = (u[:, 1] * 255)[:, None, None]
    images[:, 20:28, 20:28, 1] = 255 - images[:, 20:28, 20:28, 0]
    images[:, 20:28, 20:28, 2] = 0
    pictures = Arrays(images=images, factors=u, names=("grey", "hue"))
    model = LayeredCausalVAE.for_data(pictures, edges=())
    assert (model.decoder.group_masks.sum((1, 2)) > 0).all()

"""Actions of CT-VAE: application, retrieval, and matching of latent actions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from disentwine.errors import UsageError, did_you_mean
from disentwine.losses.transition import negative_log_likelihood
from disentwine.models.quantized.transition_losses import PAIRS_AT_ONCE, opposites
from disentwine.nn.images import check_images, evaluation_mode, map_images
from disentwine.nn.transition import ActionGraph

if TYPE_CHECKING:
    from disentwine.models.quantized.ct_vae import CTVAE


def apply_actions(
    model: CTVAE, x: Any, action: str | int | Sequence[str | int], *, times: int
) -> Any:
    """Images after one or several actions, see `CTVAE.apply`."""
    if not isinstance(times, int | np.integer) or times < 1:
        raise UsageError(f"times: an action is applied once or more, got {times}")
    sequence: list[Any] = [*action] if isinstance(action, list | tuple | np.ndarray) else [action]
    indices = [action_index(model.actions, one) for one in sequence] * int(times)

    def answer(x: Tensor, rows: slice) -> Tensor:
        vectors = model.look_up(model.indices(x))
        for index in indices:
            vectors = model.act(vectors, torch.full((len(x),), index, device=x.device))
        return model.mcq_vae.mean_image(vectors)

    return map_images(model, x, answer)


def retrieve_actions(model: CTVAE, x: Any, y: Any, *, bidirectional: bool | None = None) -> Any:
    """Posterior probabilities of the actions between pairs of images, see `CTVAE.retrieve`.

    Arguments:
        model: a CT-VAE.
        x, y: pairs of images.
        bidirectional: also retrieve the opposite action on the reversed pair; by default the
            model's option.
    """
    both_ways = model.bidirectional if bidirectional is None else bidirectional
    tensors = isinstance(x, Tensor)
    if tensors != isinstance(y, Tensor):
        raise UsageError("x and y must be pairs of images, both arrays or both tensors")
    if not tensors:
        x, y = np.asarray(x), np.asarray(y)
    if x.shape != y.shape:
        raise UsageError(f"x {tuple(x.shape)} and y {tuple(y.shape)} must be pairs of images")
    check_images(x, model.image_shape)
    channels_first = tensors and x.is_floating_point()
    axis = 1 if channels_first else -1
    pairs = torch.cat([x, y], axis) if tensors else np.concatenate([x, y], axis)
    height, width, channels = model.image_shape

    def answer(pair: Tensor, rows: slice) -> Tensor:
        a, b = (model.indices(image) for image in pair.chunk(2, dim=1))
        fit = _log_likelihood(model, a, b)
        if both_ways:
            fit = 0.5 * (fit + _log_likelihood(model, b, a)[:, opposites(model.actions)])
        return fit.softmax(-1)

    return map_images(model, pairs, answer, shape=(height, width, 2 * channels))


def _log_likelihood(model: CTVAE, x: Tensor, y: Tensor) -> Tensor:
    """Log-likelihood (n, actions) of codes y after each action on codes x."""
    parts = [
        -negative_log_likelihood(model.layer(model.look_up(a), model.table)[0], b[:, None])
        for a, b in zip(*(torch.split(z, PAIRS_AT_ONCE) for z in (x, y)), strict=True)
    ]
    return torch.cat(parts)[:, model.places]


def match_actions(model: CTVAE, x: Any, y: Any, action: Any) -> None:
    """Assign names to latent actions by the Hungarian algorithm, see `CTVAE.match`."""
    if not model.latent_actions:
        raise UsageError("actions with known names need no match; use action_labels 'latent'")
    several = action.tolist() if isinstance(action, Tensor | np.ndarray) else action
    if isinstance(several, str | int) or len(several) != len(x):
        raise UsageError(f"give the action of each pair: {len(x)} pairs, got {several!r:.80}")
    indices = [action_index(model.actions, one) for one in several]
    places = model.places.clone()
    model.places.copy_(torch.arange(len(model.actions)))
    try:  # unnamed actions have no opposites
        q = np.asarray(retrieve_actions(model, x, y, bidirectional=False), dtype=np.float64)
    except BaseException:
        model.places.copy_(places)
        raise
    counts = np.zeros((len(model.actions), len(model.actions)))
    np.add.at(counts, (indices, q.argmax(1)), 1)
    model.places.copy_(torch.from_numpy(linear_sum_assignment(-counts)[1]))


def action_graphs(model: CTVAE, x: Tensor) -> ActionGraph:
    """Expected graphs of images under every action and under none, see `CTVAE.graphs`."""
    with evaluation_mode(model):
        vectors = model.look_up(model.indices(x))
        found = model.layer.graph(model.layer.nodes(vectors, model.table))
    order = torch.cat([model.places, model.places.new_tensor([len(model.actions)])])
    edges, mask, alpha = (part[:, order] for part in (found.edges, found.mask, found.alpha))
    return ActionGraph(edges, mask, alpha, found.alpha_none)


def action_index(actions: Sequence[str], action: str | int) -> int:
    """The index of an action, given by name or index.

    >>> action_index(("+x", "-x"), "-x")
    1
    """
    if isinstance(action, str):
        if action not in actions:
            similar = [name for name in actions if name[1:] == action.strip("+-=0123456789.")]
            suggestion = f"Did you mean {' or '.join(similar)}?" if similar else ""
            raise UsageError(
                f"there is no action '{action}'. {suggestion or did_you_mean(action, actions)}"
            )
        return [*actions].index(action)
    if not isinstance(action, int | np.integer) or not 0 <= action < len(actions):
        raise UsageError(
            f"actions have names, or numbers from 0 to {len(actions) - 1}; got {action}"
        )
    return int(action)

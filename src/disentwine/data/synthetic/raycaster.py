"""Batched ray caster: one solid on the floor of a room and an orbiting camera.

An image is linear in the colours of floor, wall, object, sky and highlight, so rays are cast once for
each solid, size and angle; an image is a weighted sum of the resulting maps. Rays are float32 arrays
(m, rays, 3): x to the right, y away from the camera, z up.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from disentwine.core.types import FloatArray

Rays = NDArray[np.float32]

LAYERS = ("floor", "wall", "object", "sky", "highlight")
ROOM, WALL = 5.0, 2.75  # half the width of the room; height of its walls
DISTANCE, HEIGHT, TARGET = 4.7, 2.1, 0.62  # position of the camera; height of the point it looks at
FIELD = np.radians(46.0)
LIGHT = np.array([-0.42, -0.5, 0.76], np.float32) / np.float32(np.linalg.norm([-0.42, -0.5, 0.76]))
AMBIENT, SHADE, GLOSS, SHININESS = 0.45, 0.55, 0.35, 24
CUBE, CYLINDER, SPHERE, CAPSULE = range(4)
CHUNK = 8


class Span(NamedTuple):
    """Entry and exit distances of rays through a convex solid, and the normal (m, rays, 3) at entry."""

    enter: Rays
    leave: Rays
    normal: Rays


def render_maps(
    shape: FloatArray, scale: FloatArray, angle: FloatArray, *, side: int = 64, samples: int = 3
) -> NDArray[np.float32]:
    """Render the weight of each layer's colour in every pixel, (n, side, side, 5).

    Arguments:
        shape: (n,) 0 cube, 1 cylinder, 2 sphere, 3 capsule.
        scale: (n,) of the solid; 1 is about 1.4 wide.
        angle: (n,) azimuth of the camera in degrees.
        side: of the image in pixels.
        samples: rays along each side of a pixel, which are averaged.

    >>> maps = render_maps(np.array([2.0]), np.array([1.0]), np.array([0.0]), side=8)
    >>> maps.shape, bool(maps[0, 4, 4, LAYERS.index("object")] > 0.3)
    ((1, 8, 8, 5), True)
    """
    maps = np.empty((len(shape), side, side, len(LAYERS)), np.float32)
    for solid in range(4):
        chosen = np.flatnonzero(shape == solid)
        for start in range(0, len(chosen), CHUNK):
            some = chosen[start : start + CHUNK]
            layers = _shade(solid, scale[some].astype(np.float32), angle[some], side * samples)
            blocks = layers.reshape(len(some), side, samples, side, samples, len(LAYERS))
            maps[some] = blocks.mean(axis=(2, 4))
    return maps


def camera(angle: FloatArray, side: int) -> tuple[Rays, Rays]:
    """Origins (m, 1, 3) and directions (m, side * side, 3) of the rays, rows from the top."""
    position = np.array([0.0, -DISTANCE, HEIGHT])
    forward = np.array([0.0, 0.0, TARGET]) - position
    forward /= np.linalg.norm(forward)
    right = np.array([1.0, 0.0, 0.0])
    up = np.cross(right, forward)
    offsets = ((np.arange(side) + 0.5) / side * 2 - 1) * np.tan(FIELD / 2)
    ahead = forward + offsets[None, :, None] * right - offsets[:, None, None] * up
    ahead /= np.linalg.norm(ahead, axis=-1, keepdims=True)
    azimuth = np.radians(angle)
    rotation = np.zeros((len(angle), 3, 3))
    rotation[:, 0, 0] = rotation[:, 1, 1] = np.cos(azimuth)
    rotation[:, 1, 0] = np.sin(azimuth)
    rotation[:, 0, 1] = -np.sin(azimuth)
    rotation[:, 2, 2] = 1
    directions = ahead.reshape(-1, 3) @ rotation.transpose(0, 2, 1)
    directions[np.abs(directions) < 1e-6] = 1e-6  # slabs divide by them
    origins = (rotation @ position)[:, None]
    return origins.astype(np.float32), directions.astype(np.float32)


def _shade(solid: int, scale: Rays, angle: FloatArray, side: int) -> Rays:
    """Light of each layer along every ray, (m, side * side, 5)."""
    origin, direction = camera(angle, side)
    layers = np.zeros((*direction.shape[:2], len(LAYERS)), np.float32)
    floor, wall, body, sky, highlight = np.moveaxis(layers, -1, 0)

    to_walls = (np.copysign(np.float32(ROOM), direction[..., :2]) - origin[..., :2]) / direction[
        ..., :2
    ]
    facing = to_walls.argmin(axis=-1)
    to_wall = to_walls.min(axis=-1)
    to_floor = np.where(direction[..., 2] < 0, -origin[..., 2] / direction[..., 2], np.inf)
    on_floor = to_floor < to_wall
    height = origin[..., 2] + to_wall * direction[..., 2]
    across = np.take_along_axis(direction[..., :2], facing[..., None], axis=-1)[..., 0]
    wall_light = AMBIENT + SHADE * np.maximum(-np.sign(across) * LIGHT[facing], 0)
    span = intersect(solid, origin, direction, scale)
    hit = np.isfinite(span.enter)

    reach = np.where(on_floor & ~hit, to_floor, 0).astype(np.float32)
    ground = origin + reach[..., None] * direction
    shadow = np.isfinite(
        intersect(solid, ground, np.broadcast_to(LIGHT, ground.shape), scale).enter
    )
    floor[:] = np.where(on_floor & ~hit, AMBIENT + np.where(shadow, 0, SHADE * LIGHT[2]), 0)
    wall[:] = np.where(~on_floor & ~hit & (height <= WALL), wall_light, 0)
    sky[:] = ~on_floor & ~hit & (height > WALL)
    facing_light = span.normal @ LIGHT
    body[:] = np.where(hit, AMBIENT + SHADE * np.maximum(facing_light, 0), 0)
    mirrored = 2 * facing_light[..., None] * span.normal - LIGHT
    towards_eye = -(mirrored * direction).sum(axis=-1)
    highlight[:] = np.where(hit, GLOSS * towards_eye.clip(0, 1) ** SHININESS, 0)
    return layers


def intersect(solid: int, origin: Rays, direction: Rays, scale: Rays) -> Span:
    """Intersection of rays with a solid at the centre of the floor; infinite for rays that miss."""
    size = scale[:, None]
    if solid == SPHERE:
        return _ball(origin, direction, 0.8 * size, 0.8 * size)
    if solid == CUBE:
        half = 0.64 * size
        return _both(
            _both(
                _slab(origin, direction, 0, -half, half), _slab(origin, direction, 1, -half, half)
            ),
            _slab(origin, direction, 2, 0 * half, 2 * half),
        )
    if solid == CYLINDER:
        return _both(
            _pillar(origin, direction, 0.7 * size),
            _slab(origin, direction, 2, 0 * size, 1.4 * size),
        )
    radius, top = 0.55 * size, 1.25 * size
    return _either(
        _either(
            _both(_pillar(origin, direction, radius), _slab(origin, direction, 2, radius, top)),
            _ball(origin, direction, radius, top),
        ),
        _ball(origin, direction, radius, radius),
    )


def _slab(origin: Rays, direction: Rays, axis: int, low: Rays, high: Rays) -> Span:
    """Space between two planes normal to an axis."""
    o, d = origin[..., axis], direction[..., axis]
    one, other = (low - o) / d, (high - o) / d
    normal = np.zeros(direction.shape, np.float32)
    normal[..., axis] = -np.sign(d)
    return Span(np.minimum(one, other), np.maximum(one, other), normal)


def _pillar(origin: Rays, direction: Rays, radius: Rays) -> Span:
    """Infinite cylinder around the vertical axis."""
    return _quadric(origin * _FLAT, direction * _FLAT, radius)


def _ball(origin: Rays, direction: Rays, radius: Rays, height: Rays) -> Span:
    """Ball around a point of the vertical axis."""
    centre = np.zeros((*height.shape, 3), np.float32)
    centre[..., 2] = height
    return _quadric(origin - centre, direction, radius)


def _quadric(o: Rays, d: Rays, radius: Rays) -> Span:
    a, b = (d * d).sum(axis=-1), (o * d).sum(axis=-1)
    root = b * b - a * ((o * o).sum(axis=-1) - radius * radius)
    reach = np.sqrt(np.maximum(root, 0))
    miss = (root < 0) | (reach <= b)  # the ray passes the solid, or starts behind it
    enter = np.where(miss, np.inf, (-b - reach) / a)
    leave = np.where(miss, -np.inf, (-b + reach) / a)
    at = np.where(miss, np.float32(0), enter)[..., None]
    return Span(enter, leave, np.divide(o + at * d, radius[..., None]))


def _both(one: Span, other: Span) -> Span:
    """Intersection of two solids."""
    enter, leave = np.maximum(one.enter, other.enter), np.minimum(one.leave, other.leave)
    normal = np.where((one.enter >= other.enter)[..., None], one.normal, other.normal)
    missed = (enter >= leave) | (leave <= 0)
    return Span(np.where(missed, np.inf, enter), np.where(missed, -np.inf, leave), normal)


def _either(one: Span, other: Span) -> Span:
    """Union of two solids, for rays from outside."""
    normal = np.where((one.enter <= other.enter)[..., None], one.normal, other.normal)
    return Span(np.minimum(one.enter, other.enter), np.maximum(one.leave, other.leave), normal)


_FLAT = np.array([1.0, 1.0, 0.0], np.float32)

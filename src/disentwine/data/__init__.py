"""Data sets, and `DATASETS`, their names in recipes."""

from disentwine.core.dataset import Dataset
from disentwine.data.arrays import Arrays
from disentwine.data.folder.dataset import Folder
from disentwine.data.published.cars3d import Cars3D
from disentwine.data.published.causalvae import FlowAuthors, PendulumAuthors
from disentwine.data.published.celeba import CelebA, CelebABeard, CelebASmile
from disentwine.data.published.dsprites import DSprites
from disentwine.data.published.mnist import MNIST, BinarizedMNIST
from disentwine.data.published.omniglot import Omniglot
from disentwine.data.published.shapes3d import Shapes3DAuthors
from disentwine.data.published.smallnorb import SmallNORB
from disentwine.data.published.sprites_lpc import SpritesLPC
from disentwine.data.published.sprites_reed import SpritesReed
from disentwine.data.synthetic.flow import Flow
from disentwine.data.synthetic.pendulum import Pendulum
from disentwine.data.synthetic.shapes2d import Shapes2D
from disentwine.data.synthetic.shapes3d import Shapes3D
from disentwine.data.transitions import transitions

DATASETS: dict[str, type[Dataset]] = {
    "pendulum": Pendulum,
    "flow": Flow,
    "shapes2d": Shapes2D,
    "shapes3d": Shapes3D,
    "dsprites": DSprites,
    "shapes3d-authors": Shapes3DAuthors,
    "cars3d": Cars3D,
    "sprites-lpc": SpritesLPC,
    "sprites-reed": SpritesReed,
    "mnist": MNIST,
    "binarized-mnist": BinarizedMNIST,
    "omniglot": Omniglot,
    "smallnorb": SmallNORB,
    "pendulum-authors": PendulumAuthors,
    "flow-authors": FlowAuthors,
    "celeba": CelebA,
    "celeba-smile": CelebASmile,
    "celeba-beard": CelebABeard,
    "folder": Folder,
}

__all__ = [
    "DATASETS",
    "MNIST",
    "Arrays",
    "BinarizedMNIST",
    "Cars3D",
    "CelebA",
    "CelebABeard",
    "CelebASmile",
    "DSprites",
    "Flow",
    "FlowAuthors",
    "Folder",
    "Omniglot",
    "Pendulum",
    "PendulumAuthors",
    "Shapes2D",
    "Shapes3D",
    "Shapes3DAuthors",
    "SmallNORB",
    "SpritesLPC",
    "SpritesReed",
    "transitions",
]

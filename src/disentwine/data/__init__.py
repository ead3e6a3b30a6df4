"""One file a data set, and the table of their names."""

from disentwine.contracts.dataset import Dataset
from disentwine.data.arrays import Arrays
from disentwine.data.authors import FlowAuthors, PendulumAuthors
from disentwine.data.binarized_mnist import BinarizedMNIST
from disentwine.data.cars3d import Cars3D
from disentwine.data.celeba import CelebA, CelebABeard, CelebASmile
from disentwine.data.dsprites import DSprites
from disentwine.data.flow import Flow
from disentwine.data.folder import Folder
from disentwine.data.mnist import MNIST
from disentwine.data.omniglot import Omniglot
from disentwine.data.pendulum import Pendulum
from disentwine.data.shapes2d import Shapes2D
from disentwine.data.shapes3d import Shapes3D
from disentwine.data.shapes3d_authors import Shapes3DAuthors
from disentwine.data.smallnorb import SmallNORB
from disentwine.data.sprites_lpc import SpritesLPC
from disentwine.data.sprites_reed import SpritesReed
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

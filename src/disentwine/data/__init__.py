"""One file a data set, and the table of their names."""

from disentwine.contracts.dataset import Dataset
from disentwine.data.arrays import Arrays
from disentwine.data.authors import FlowAuthors, PendulumAuthors
from disentwine.data.binarized_mnist import BinarizedMNIST
from disentwine.data.celeba import CelebA, CelebABeard, CelebASmile
from disentwine.data.dsprites import DSprites
from disentwine.data.flow import Flow
from disentwine.data.folder import Folder
from disentwine.data.mnist import MNIST
from disentwine.data.omniglot import Omniglot
from disentwine.data.pendulum import Pendulum
from disentwine.data.shapes2d import Shapes2D
from disentwine.data.smallnorb import SmallNORB

DATASETS: dict[str, type[Dataset]] = {
    "pendulum": Pendulum,
    "flow": Flow,
    "shapes2d": Shapes2D,
    "dsprites": DSprites,
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
    "SmallNORB",
]

"""One file a data set, and the table of their names."""

from disentwine.contracts.dataset import Dataset
from disentwine.data.arrays import Arrays
from disentwine.data.authors import FlowAuthors, PendulumAuthors
from disentwine.data.dsprites import DSprites
from disentwine.data.flow import Flow
from disentwine.data.folder import Folder
from disentwine.data.mnist import MNIST
from disentwine.data.pendulum import Pendulum
from disentwine.data.shapes2d import Shapes2D

DATASETS: dict[str, type[Dataset]] = {
    "pendulum": Pendulum,
    "flow": Flow,
    "shapes2d": Shapes2D,
    "dsprites": DSprites,
    "mnist": MNIST,
    "pendulum-authors": PendulumAuthors,
    "flow-authors": FlowAuthors,
    "folder": Folder,
}

__all__ = [
    "DATASETS",
    "MNIST",
    "Arrays",
    "DSprites",
    "Flow",
    "FlowAuthors",
    "Folder",
    "Pendulum",
    "PendulumAuthors",
    "Shapes2D",
]

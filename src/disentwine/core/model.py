"""What a model promises: a loss of named terms, a representation and a reconstruction."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, is_dataclass
from types import MappingProxyType
from typing import (
    Any,
    ClassVar,
    Concatenate,
    Generic,
    NamedTuple,
    ParamSpec,
    Self,
    TypeVar,
    cast,
    overload,
)

import torch
from torch import Tensor, nn

from disentwine.core.dataset import Dataset
from disentwine.core.schema import parse, schema_of
from disentwine.errors import UsageError


class Batch(NamedTuple):
    """What one step of training sees.

    Arguments:
        x: (n, channels, height, width) images in [0, 1].
        u: (n, k) factors in their own units, NaN where an image carries no label.
        step: how many updates were made before this one, for schedules.
        y: what became of each image under an action, where pairs are learnt from.
        action: (n,) the number of that action.
        later: what became of y under a further action, and that action; and so on.
    """

    x: Tensor
    u: Tensor
    step: int = 0
    y: Tensor | None = None
    action: Tensor | None = None
    later: tuple[tuple[Tensor, Tensor], ...] = ()


class Losses(NamedTuple):
    r"""Named loss terms $\ell_t$ with their weights $w_t$; the total is $\sum_t w_t\,\bar\ell_t$.

    Arguments:
        terms: each term, one value a sample (n,) or one for the batch ().
        weights: the weight of each term; 1 where none is given. A term of weight 0 is only watched.

    >>> Losses({"reconstruction": torch.tensor([2.0, 4.0]), "kl": torch.tensor([1.0, 1.0])},
    ...        {"kl": 4.0}).total
    tensor(7.)
    """

    terms: Mapping[str, Tensor]
    weights: Mapping[str, float] = MappingProxyType({})

    @property
    def total(self) -> Tensor:
        weighted = [self.weights.get(name, 1.0) * term.mean() for name, term in self.terms.items()]
        return torch.stack(weighted).sum()

    def means(self) -> dict[str, Tensor]:
        """Every term's mean over the batch, and their weighted total as "loss"."""
        return {"loss": self.total.detach()} | {n: t.detach().mean() for n, t in self.terms.items()}


Options = ParamSpec("Options")
ModelType = TypeVar("ModelType", bound="Model")


class ForData(Generic[Options]):
    """The typed constructor `for_data` of a model: a data set in place of what it decides.

    A model writes `for_data = ForData(__init__)` below its constructor, whose positional arguments the
    data set decides; then editors and type checkers know the options of `for_data`
    (docs/decisions/0017-typed-options.md).

    >>> import inspect
    >>> from disentwine import VAE
    >>> list(inspect.signature(VAE.for_data).parameters)
    ['dataset', 'latent', 'network', 'likelihood', 'warm_up_steps']
    """

    @overload
    def __init__(
        self, constructor: Callable[Concatenate[Any, Any, Any, Any, Any, Options], None]
    ) -> None: ...
    @overload
    def __init__(
        self, constructor: Callable[Concatenate[Any, Any, Any, Any, Options], None]
    ) -> None: ...
    @overload
    def __init__(
        self, constructor: Callable[Concatenate[Any, Any, Any, Options], None]
    ) -> None: ...
    @overload
    def __init__(self, constructor: Callable[Concatenate[Any, Any, Options], None]) -> None: ...
    def __init__(self, constructor: Callable[..., None]) -> None:
        """The constructor is for type checkers; the options are read from the class itself."""

    def __get__(
        self, instance: Model | None, owner: type[ModelType]
    ) -> Callable[Concatenate[Dataset, Options], ModelType]:
        def for_data(dataset: Dataset, **options: Any) -> Any:
            return owner.build(dataset, options)

        for_data.__doc__ = f"Build the model for a data set.\n\n{inspect.getdoc(owner)}"
        for_data.__qualname__ = f"{owner.__qualname__}.for_data"
        for_data.__signature__ = _signature_for_data(owner)  # type: ignore[attr-defined]
        return cast("Callable[Concatenate[Dataset, Options], ModelType]", for_data)


def _signature_for_data(owner: type[Model]) -> inspect.Signature:
    """The constructor's signature with `dataset` in place of what the data set decides."""
    dataset = inspect.Parameter(
        "dataset", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation="Dataset"
    )
    options = [
        parameter
        for name, parameter in inspect.signature(owner).parameters.items()
        if name not in owner.fixed_by_data
    ]
    return inspect.Signature([dataset, *options], return_annotation=owner)


def _any_options(self: Any, image_shape: Any, *arguments: Any, **options: Any) -> None:
    """What type checkers know of a model that does not write `for_data = ForData(__init__)`."""


CALLED_BY_USERS = [
    "parameters",
    "named_parameters",
    "state_dict",
    "load_state_dict",
    "zero_grad",
    "requires_grad_",
    "train",
    "eval",
    "training",
    "to",
    "cpu",
    "cuda",
    "float",
    "double",
]
"""The names of `nn.Module` that users of a model call."""

CALLED_BY_TRAINING = frozenset(
    (
        "betas",
        "build",
        "check_options",
        "data_arguments",
        "fixed_arguments",
        "fixed_by_data",
        "initialise_from",
    )
)


class Model(nn.Module, ABC):
    """A model of images. Subclasses keep every constructor argument as an attribute of its own
    name, so that a recipe can be written from the object, and implement the three methods below.

    Attributes:
        fixed_by_data: constructor arguments that the data set decides, which no recipe sets.
        betas: of the Adam that trains it, where its paper asks for others than usual.
    """

    fixed_by_data: ClassVar[tuple[str, ...]] = ("image_shape",)
    betas: ClassVar[tuple[float, float]] = (0.9, 0.999)

    @abstractmethod
    def loss(self, batch: Batch) -> Losses:
        """The objective of the paper, term by term, to be minimised."""

    @abstractmethod
    def represent(self, x: Any) -> Any:
        """The code of each image, shape (n, d). Arrays of `uint8` images are welcome."""

    @abstractmethod
    def reconstruct(self, x: Any) -> Any:
        """Each image after passing through its code, in the form it was given."""

    for_data = ForData(_any_options)

    @classmethod
    def build(cls, dataset: Dataset, options: Mapping[str, Any]) -> Self:
        """What `for_data` does."""
        options = cls.check_options(options)
        if not all(name in options for name in cls.fixed_by_data):
            options = cls.data_arguments(dataset, options) | options
        model = cls(**options)
        model.initialise_from(dataset)
        return model

    def initialise_from(self, dataset: Dataset) -> None:
        """Set initial weights and buffers that depend on the training images or labels."""

    def __dir__(self) -> Iterable[str]:
        """What users call: options, submodules and methods, without most names of `nn.Module`."""
        own = [name for cls in type(self).__mro__ if issubclass(cls, Model) for name in vars(cls)]
        public = {name for name in (*own, *vars(self), *self._modules) if not name.startswith("_")}
        return sorted((public - CALLED_BY_TRAINING).union(CALLED_BY_USERS))

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        """Options as the constructor takes them; what it does not take is refused in one report."""
        chosen = {name: value for name, value in options.items() if name not in cls.fixed_by_data}
        schema = schema_of(cls, without=cls.fixed_by_data)
        parsed, problems = parse(schema, chosen, section=cls.__name__)
        if problems:
            raise UsageError("; ".join(problems))
        return {**options, **{name: getattr(parsed, name) for name in chosen}}

    @classmethod
    def data_arguments(cls, dataset: Dataset, options: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments named in `fixed_by_data`, read from a data set."""
        return {"image_shape": dataset.image_shape}

    def fixed_arguments(self) -> dict[str, Any]:
        """The arguments named in `fixed_by_data` as JSON, for checkpoints."""
        fixed = {name: getattr(self, name) for name in self.fixed_by_data}
        return {
            name: asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
            for name, value in fixed.items()
        }


def check_fits(model: Model, dataset: Dataset) -> None:
    """Refuse a data set of other images or other concepts than the model was built for."""
    shape: tuple[int, ...] = tuple(getattr(model, "image_shape", dataset.image_shape))
    if shape != tuple(dataset.image_shape):
        raise UsageError(
            f"the model takes images of {' x '.join(map(str, shape))}, and the data set's are "
            f"{' x '.join(map(str, dataset.image_shape))}; build it with {type(model).__name__}.for_data"
        )
    varied: tuple[int, ...] = getattr(model, "varied", ())
    if varied and max(varied) >= len(dataset.names):
        raise UsageError(
            f"the model varies {len(varied)} factors one by one, and the data set has "
            f"{len(dataset.names)}; build it with {type(model).__name__}.for_data"
        )
    names: tuple[str, ...] = tuple(getattr(model, "concept_names", dataset.names))
    if names != tuple(dataset.names):
        raise UsageError(
            f"the model's concepts are {', '.join(names)}, and the data set's factors are "
            f"{', '.join(dataset.names) or 'none'}; build it with {type(model).__name__}.for_data"
        )

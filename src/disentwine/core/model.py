"""The contract of models: a loss of named terms, a representation, a reconstruction."""

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
from disentwine.core.plan import Stage, TrainingSettings
from disentwine.core.schema import parse, schema_of
from disentwine.errors import UsageError


class Batch(NamedTuple):
    """The batch of one step of training.

    Arguments:
        x: (n, channels, height, width) images in [0, 1].
        u: (n, k) factors in their own units, NaN for missing labels.
        step: number of updates before this one, for schedules.
        y: each image after an action, in batches of pairs.
        action: (n,) the index of that action.
        later: (image after the action, action) for each further step of a rollout.
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
        terms: each term, one value per sample (n,) or one for the batch ().
        weights: the weight of each term, 1 by default. A term of weight 0 is only logged.

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
    """Typed constructor `for_data` of a model: a data set replaces the arguments in `fixed_by_data`.

    A model declares `for_data = ForData(__init__)` below its constructor, whose positional arguments are
    read from the data set. Editors and type checkers then know the options of `for_data`
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
        self, instance: Model | None, model_class: type[ModelType]
    ) -> Callable[Concatenate[Dataset, Options], ModelType]:
        def for_data(dataset: Dataset, **options: Any) -> Any:
            return model_class.build(dataset, options)

        for_data.__doc__ = f"Build the model for a data set.\n\n{inspect.getdoc(model_class)}"
        for_data.__qualname__ = f"{model_class.__qualname__}.for_data"
        for_data.__signature__ = _signature_for_data(model_class)  # type: ignore[attr-defined]
        return cast("Callable[Concatenate[Dataset, Options], ModelType]", for_data)


def _signature_for_data(model_class: type[Model]) -> inspect.Signature:
    """The constructor's signature with `dataset` in place of the arguments in `fixed_by_data`."""
    dataset = inspect.Parameter(
        "dataset", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation="Dataset"
    )
    options = [
        parameter
        for name, parameter in inspect.signature(model_class).parameters.items()
        if name not in model_class.fixed_by_data
    ]
    return inspect.Signature([dataset, *options], return_annotation=model_class)


def _any_options(self: Any, image_shape: Any, *arguments: Any, **options: Any) -> None:
    """The signature for type checkers of a model without `for_data = ForData(__init__)`."""


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
"""Names of `nn.Module` that users of a model call."""

CALLED_BY_TRAINING = frozenset(
    (
        *("betas", "build", "check_fits", "check_options", "check_training", "data_arguments"),
        *("fixed_arguments", "fixed_by_data", "initialise_from", "not_in_weights"),
        "training_plan",
    )
)


class Model(nn.Module, ABC):
    """A model of images.

    Subclasses store every constructor argument as an attribute of the same name, so that a recipe can
    be written from the object, and implement `loss`, `represent` and `reconstruct`.

    Attributes:
        fixed_by_data: constructor arguments that are read from the data set and not set in recipes.
        not_in_weights: constructor arguments that no weight depends on, such as loss weights; they may
            differ from those of the run that `training.init_from` names.
        betas: Adam's betas, where the paper deviates from the defaults.
    """

    fixed_by_data: ClassVar[tuple[str, ...]] = ("image_shape",)
    not_in_weights: ClassVar[tuple[str, ...]] = ()
    betas: ClassVar[tuple[float, float]] = (0.9, 0.999)

    @abstractmethod
    def loss(self, batch: Batch) -> Losses:
        """The named terms of the objective, which is minimised."""

    @abstractmethod
    def represent(self, x: Any) -> Any:
        """Latents (n, d) of images: a float tensor in [0, 1] or a `uint8` array."""

    @abstractmethod
    def reconstruct(self, x: Any) -> Any:
        """Reconstruction of each image, in the format of the input."""

    for_data = ForData(_any_options)

    @classmethod
    def build(cls, dataset: Dataset, options: Mapping[str, Any]) -> Self:
        """Build the model for a data set, as `for_data` does."""
        options = cls.check_options(options)
        if not all(name in options for name in cls.fixed_by_data):
            options = cls.data_arguments(dataset, options) | options
        model = cls(**options)
        model.initialise_from(dataset)
        return model

    def initialise_from(self, dataset: Dataset) -> None:
        """Initialise weights and buffers that depend on the training images or labels."""

    def __dir__(self) -> Iterable[str]:
        """Options, submodules and methods for users, without most names of `nn.Module`."""
        own = [name for cls in type(self).__mro__ if issubclass(cls, Model) for name in vars(cls)]
        public = {name for name in (*own, *vars(self), *self._modules) if not name.startswith("_")}
        return sorted((public - CALLED_BY_TRAINING).union(CALLED_BY_USERS))

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        """Options as the constructor takes them; raises one `UsageError` for all problems."""
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

    def check_fits(self, dataset: Dataset) -> None:
        """Raise `UsageError` if the image shape or the concepts differ from the model's."""
        rebuild = f"build it with {type(self).__name__}.for_data"
        shape: tuple[int, ...] = tuple(getattr(self, "image_shape", dataset.image_shape))
        if shape != tuple(dataset.image_shape):
            raise UsageError(
                f"the model takes images of {' x '.join(map(str, shape))}, but the data set has "
                f"{' x '.join(map(str, dataset.image_shape))}; {rebuild}"
            )
        names: tuple[str, ...] = tuple(getattr(self, "concept_names", dataset.names))
        if names != tuple(dataset.names):
            raise UsageError(
                f"the model's concepts are {', '.join(names)}, and the data set's factors are "
                f"{', '.join(dataset.names) or 'none'}; {rebuild}"
            )

    def check_training(self, options: TrainingSettings) -> list[str]:
        """Warnings about training options, such as a warm-up longer than the training; raises
        `UsageError` for options that the model cannot be trained with."""
        return []

    def training_plan(self, dataset: Dataset, *, steps: int, batch_size: int) -> tuple[Stage, ...]:
        """The stages of training; empty for a single stage of shuffled images.

        Arguments:
            dataset: the training data.
            steps: total number of updates.
            batch_size: largest number of samples in a batch.
        """
        return ()

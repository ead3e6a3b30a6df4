"""Types of requests and answers, from which the OpenAPI description is made."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from disentwine.core.types import Kind

Name = Annotated[str, Field(max_length=200)]
ImageUrl = Annotated[str, Field(description="A PNG as a data URL.")]
Values = dict[str, float | None]

Do = Annotated[
    dict[Name, float | Name],
    Field(
        max_length=100,
        description="Values by concept: a number in its unit, or the name of a category.",
    ),
]
ImageId = Annotated[str, Field(max_length=40, description='"t-17" or "u-...".')]


class Request(BaseModel):
    """A body without unknown fields; texts are not converted to numbers."""

    model_config = ConfigDict(extra="forbid", strict=True)


class DoRequest(Request):
    image: ImageId
    do: Do = {}


class SweepRequest(Request):
    image: ImageId
    concept: Name
    do: Do = {}
    count: Annotated[int, Field(ge=1, le=15)] = 9


class TraverseRequest(Request):
    image: ImageId
    latents: Annotated[
        dict[Annotated[str, Field(pattern=r"^[0-9]{1,6}$")], FiniteFloat],
        Field(max_length=10_000, description="New values of latents, by index."),
    ] = {}


class SampleRequest(Request):
    count: Annotated[int, Field(ge=1, le=16)] = 8
    do: Do = {}
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None


class ApplyRequest(Request):
    image: ImageId
    actions: Annotated[list[Name], Field(min_length=1, max_length=20)]


class RetrieveRequest(Request):
    before: ImageId
    after: ImageId


class RunSummary(BaseModel):
    id: str
    name: str
    model: str
    data: str
    capabilities: list[str]
    finished: bool
    steps: int
    simulator: bool


class Concept(BaseModel):
    """A concept: unit, training range, step of its slider, and the names of its categories."""

    name: str
    label: str
    unit: str
    kind: Kind
    low: float
    high: float
    step: float
    values: list[str]


class Edge(BaseModel):
    source: str
    target: str
    weight: float | None
    confidence: float | None


class GraphAnswer(BaseModel):
    nodes: list[str]
    edges: list[Edge]


class Action(BaseModel):
    id: str
    label: str


class LatentLayer(BaseModel):
    """A layer of a hierarchy: its latents, the most active first, and how many to show at first."""

    name: str
    latents: list[int]
    first: int


class RunDetails(RunSummary):
    step: int
    shape: tuple[int, int, int]
    recipe: str
    concepts: list[Concept]
    latent_count: int | None
    latent_names: list[str]
    latent_layers: list[LatentLayer]
    actions: list[Action]
    graph: GraphAnswer | None
    true_graph: GraphAnswer | None
    examples: int
    unavailable: Annotated[str, Field(description="Why the data are not available; else empty.")]


class Thumbnail(BaseModel):
    image: str
    thumbnail: ImageUrl


class ImageAnswer(BaseModel):
    original: ImageUrl
    reconstruction: ImageUrl
    values: Values | None
    truth: Values | None
    latents: list[float | None] | None


class Errors(BaseModel):
    """Mean squared error of a pixel in [0, 1] against the true counterfactual."""

    model: float
    unchanged: float


class DoAnswer(BaseModel):
    image: ImageUrl
    original: ImageUrl
    reconstruction: ImageUrl
    before: Values
    after: Values
    truth: ImageUrl | None
    difference: ImageUrl | None
    error: Errors | None
    removed_edges: list[tuple[str, str]]
    affected: list[str]
    outside_range: Annotated[
        list[str], Field(description="Concepts that are set to values outside the training range.")
    ]
    milliseconds: float


class SweepAnswer(BaseModel):
    values: list[float]
    images: list[ImageUrl]
    truths: list[ImageUrl] | None


class TraverseAnswer(BaseModel):
    image: ImageUrl
    latents: list[float | None]
    ranges: list[tuple[float | None, float | None]]


class SampleAnswer(BaseModel):
    images: list[ImageUrl]


class ApplyAnswer(BaseModel):
    images: list[ImageUrl]
    truths: list[ImageUrl | None] | None
    valid_steps: Annotated[
        int | None,
        Field(description="Number of actions before the first that leads beyond a last value."),
    ]


class LikelyAction(Action):
    probability: float | None


class RetrieveAnswer(BaseModel):
    actions: list[LikelyAction]


class ScoreAnswer(BaseModel):
    name: str
    value: float | None
    n: int
    noise_floor: float | None
    about: str


class TrainingAnswer(BaseModel):
    finished: bool
    running: bool
    step: int
    steps: int
    rows: list[dict[str, float | str | None]]


class Health(BaseModel):
    status: Literal["ok"] = "ok"
    runs: int


class Problem(BaseModel):
    """Body of every error."""

    detail: str


class ClientSequence(BaseModel):
    """A client and the number of its request."""

    client: str | None
    sequence: int

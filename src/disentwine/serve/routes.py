"""Routes of the HTTP API."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Header, Query, Request

from disentwine.serve import actions, details, explore
from disentwine.serve import schema as s
from disentwine.serve.images import Uploads, thumbnail
from disentwine.serve.loaded_run import EncodedImage, LoadedRun
from disentwine.serve.run_registry import RunRegistry, ServedRun
from disentwine.serve.worker import Worker

LOADING_SECONDS = 120.0
"""Maximum duration of the first request of a run, which loads its data set."""

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class ServerState:
    """State of the server.

    Arguments:
        registry: the runs.
        models: worker that computes with networks.
        disk: worker that reads runs, logs and images, so that sliders do not wait for files.
        uploads: uploaded images.
    """

    registry: RunRegistry
    models: Worker
    disk: Worker
    uploads: Uploads


@dataclass(frozen=True)
class RunRequest:
    """One request about one run."""

    state: ServerState
    served: ServedRun
    loaded_run: LoadedRun
    path: str

    def encode(self, image: str) -> EncodedImage:
        """The encoded image; called in the thread of the models."""
        return self.loaded_run.encode(image, self.state.uploads.read)

    async def compute(
        self, work: Callable[[], Answer], client: s.ClientSequence | None = None
    ) -> Answer:
        """Compute in the thread of the models; only the newest request of a client is kept."""
        if client is None or client.client is None:
            return await self.state.models.run(work)
        key = (client.client, self.path)
        return await self.state.models.run(work, key=key, sequence=client.sequence)


def server_state(request: Request) -> ServerState:
    state: ServerState = request.app.state.explorer
    return state


async def run_request(run: str, request: Request) -> RunRequest:
    state = server_state(request)
    served = state.registry.find(run)
    loaded_run = served.loaded_run
    if loaded_run is None or served.stale:
        loaded_run = await state.disk.run(served.load, seconds=LOADING_SECONDS)
    return RunRequest(state, served, loaded_run, request.url.path)


def client_sequence(
    x_client: Annotated[
        str | None, Header(max_length=80, description="A random name of the client.")
    ] = None,
    x_sequence: Annotated[int, Header(ge=0, description="Number of the request, increasing.")] = 0,
) -> s.ClientSequence:
    return s.ClientSequence(client=x_client, sequence=x_sequence)


Explorer = Annotated[ServerState, Depends(server_state)]
Requested = Annotated[RunRequest, Depends(run_request)]
Sequence = Annotated[s.ClientSequence, Depends(client_sequence)]
REFUSALS: dict[int | str, dict[str, Any]] = {
    404: {"model": s.Problem, "description": "No such run, image or capability."},
    409: {"model": s.Problem, "description": "A newer request of the same client waits."},
    422: {"model": s.Problem, "description": "The request is invalid; detail says why."},
    503: {"model": s.Problem, "description": "Too many requests: repeat after Retry-After."},
}
router = APIRouter(prefix="/api", responses=REFUSALS)


@router.get("/health")
async def health(state: Explorer) -> s.Health:
    """Whether the server answers."""
    return s.Health(runs=len(state.registry.runs))


@router.get("/runs")
async def runs(state: Explorer) -> list[s.RunSummary]:
    """The served runs and their capabilities."""
    return [
        await state.disk.run(served.summary, seconds=LOADING_SECONDS)
        for served in state.registry.runs.values()
    ]


@router.get("/runs/{run}")
async def run(request: Requested) -> s.RunDetails:
    """Concepts, latents, actions and graphs of a run."""
    return await request.compute(lambda: details.describe(request.served, request.loaded_run))


@router.get("/runs/{run}/images")
async def images(
    request: Requested,
    offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
    count: Annotated[int, Query(ge=1, le=100)] = 24,
) -> list[s.Thumbnail]:
    """Held-out images in a fixed random order."""
    return await request.compute(lambda: explore.thumbnails(request.loaded_run, offset, count))


@router.post(
    "/uploads",
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                kind: {"schema": {"type": "string", "format": "binary"}}
                for kind in ("image/png", "image/jpeg")
            },
        }
    },
)
async def upload(
    request: Request,
    state: Explorer,
    run: Annotated[str, Query(max_length=40, description="The run that uses the image.")],
) -> s.Thumbnail:
    """Upload a PNG or JPEG of at most 4 MB; it is kept in memory for a limited time."""
    content = await request.body()
    loaded_run = (await run_request(run, request)).loaded_run

    def add() -> s.Thumbnail:
        image, pixels = state.uploads.add(content, loaded_run.shape)
        return s.Thumbnail(image=image, thumbnail=thumbnail(pixels))

    return await state.disk.run(add)


@router.get("/runs/{run}/images/{image}")
async def image(request: Requested, image: str) -> s.ImageAnswer:
    """An image, its reconstruction, its concepts and its latents."""
    return await request.compute(
        lambda: explore.describe_image(request.loaded_run, request.encode(image))
    )


@router.post("/runs/{run}/do")
async def do(request: Requested, body: s.DoRequest, client: Sequence) -> s.DoAnswer:
    """The counterfactual image under an intervention."""
    return await request.compute(
        lambda: explore.intervene(request.loaded_run, request.encode(body.image), body.do), client
    )


@router.post("/runs/{run}/sweep")
async def sweep(request: Requested, body: s.SweepRequest, client: Sequence) -> s.SweepAnswer:
    """Counterfactual images of one concept over its training range."""
    return await request.compute(
        lambda: explore.sweep(
            request.loaded_run, request.encode(body.image), body.concept, body.do, body.count
        ),
        client,
    )


@router.post("/runs/{run}/traverse")
async def traverse(
    request: Requested, body: s.TraverseRequest, client: Sequence
) -> s.TraverseAnswer:
    """The image decoded after some latents were changed."""
    return await request.compute(
        lambda: explore.traverse(request.loaded_run, request.encode(body.image), body.latents),
        client,
    )


@router.post("/runs/{run}/sample")
async def sample(request: Requested, body: s.SampleRequest) -> s.SampleAnswer:
    """Sampled images, also under an intervention."""
    return await request.compute(
        lambda: explore.sample(request.loaded_run, body.count, body.do, body.seed)
    )


@router.post("/runs/{run}/apply")
async def apply(request: Requested, body: s.ApplyRequest, client: Sequence) -> s.ApplyAnswer:
    """The image after each action of a sequence."""
    return await request.compute(
        lambda: actions.apply(request.loaded_run, request.encode(body.image), body.actions), client
    )


@router.post("/runs/{run}/retrieve")
async def retrieve(request: Requested, body: s.RetrieveRequest) -> s.RetrieveAnswer:
    """Infer the action between two images; the most probable first."""
    return await request.compute(
        lambda: actions.retrieve(
            request.loaded_run, request.encode(body.before), request.encode(body.after)
        )
    )


@router.get("/runs/{run}/scores")
async def scores(state: Explorer, run: str) -> list[s.ScoreAnswer]:
    """The scores stored in the run folder."""
    served = state.registry.find(run)
    return await state.disk.run(lambda: details.stored_scores(served.run))


@router.get("/runs/{run}/training")
async def training(
    state: Explorer, run: str, after: Annotated[int, Query(ge=0, le=10**12)] = 0
) -> s.TrainingAnswer:
    """The losses of a run, also while it trains."""
    served = state.registry.find(run)
    return await state.disk.run(lambda: details.training(served, after))

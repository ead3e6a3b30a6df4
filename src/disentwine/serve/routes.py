"""The routes of the API, each a few lines: find the run, compute in a thread, answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Header, Query, Request

from disentwine.serve import actions, details, explore
from disentwine.serve import schema as s
from disentwine.serve.loaded_run import Opened, Seen
from disentwine.serve.run_registry import Entry, Library
from disentwine.serve.uploads import Uploads, thumbnail
from disentwine.serve.worker import Worker

OPENING_SECONDS = 120.0
"""How long the first request of a run may take, while its data set is drawn or read."""

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class State:
    """Arguments:
    library: the runs.
    models: computes with networks.
    disk: reads runs, logs and pictures, so that sliders need not wait for files.
    uploads: pictures that were sent.
    """

    library: Library
    models: Worker
    disk: Worker
    uploads: Uploads


@dataclass(frozen=True)
class Visit:
    """One request about one run."""

    state: State
    entry: Entry
    opened: Opened
    path: str

    def see(self, image: str) -> Seen:
        """What is known of an image; called in the thread of the models."""
        return self.opened.look(image, self.state.uploads.read)

    async def compute(self, work: Callable[[], Answer], turn: s.Turn | None = None) -> Answer:
        """Compute in the thread of the models; of one client's turns only the newest counts."""
        if turn is None or turn.client is None:
            return await self.state.models.run(work)
        key = (turn.client, self.path)
        return await self.state.models.run(work, key=key, sequence=turn.sequence)


def find_state(request: Request) -> State:
    state: State = request.app.state.explorer
    return state


async def visit(run: str, request: Request) -> Visit:
    state = find_state(request)
    entry = state.library.find(run)
    opened = entry.opened
    if opened is None or entry.stale:
        opened = await state.disk.run(entry.open, seconds=OPENING_SECONDS)
    return Visit(state, entry, opened, request.url.path)


def find_turn(
    x_client: Annotated[
        str | None, Header(max_length=80, description="A random name of the asker.")
    ] = None,
    x_sequence: Annotated[int, Header(ge=0, description="Counts its requests.")] = 0,
) -> s.Turn:
    return s.Turn(client=x_client, sequence=x_sequence)


Explorer = Annotated[State, Depends(find_state)]
Visited = Annotated[Visit, Depends(visit)]
Turned = Annotated[s.Turn, Depends(find_turn)]
REFUSALS: dict[int | str, dict[str, Any]] = {
    404: {"model": s.Problem, "description": "No such run, image or capability."},
    409: {"model": s.Problem, "description": "A newer request of the same client waits."},
    422: {"model": s.Problem, "description": "What is wrong with the request."},
    503: {"model": s.Problem, "description": "Too much waits: ask again after Retry-After."},
}
router = APIRouter(prefix="/api", responses=REFUSALS)


@router.get("/health")
async def health(state: Explorer) -> s.Health:
    """Whether the server answers."""
    return s.Health(runs=len(state.library.entries))


@router.get("/runs")
async def runs(state: Explorer) -> list[s.RunSummary]:
    """The runs that are served, and what each can do."""
    return [
        await state.disk.run(entry.summary, seconds=OPENING_SECONDS)
        for entry in state.library.entries.values()
    ]


@router.get("/runs/{run}")
async def run(visited: Visited) -> s.RunDetails:
    """Concepts, codes, actions and graphs of one run."""
    return await visited.compute(lambda: details.describe(visited.entry, visited.opened))


@router.get("/runs/{run}/images")
async def images(
    visited: Visited,
    offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
    count: Annotated[int, Query(ge=1, le=100)] = 24,
) -> list[s.Thumbnail]:
    """Some held-out images, always in the same random order."""
    return await visited.compute(lambda: explore.thumbnails(visited.opened, offset, count))


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
    run: Annotated[str, Query(max_length=40, description="The run that will look at it.")],
) -> s.Thumbnail:
    """Send a PNG or JPEG of at most 4 MB; it is kept in memory for a while."""
    content = await request.body()
    opened = (await visit(run, request)).opened

    def add() -> s.Thumbnail:
        image, picture = state.uploads.add(content, opened.shape)
        return s.Thumbnail(image=image, thumbnail=thumbnail(picture))

    return await state.disk.run(add)


@router.get("/runs/{run}/images/{image}")
async def image(visited: Visited, image: str) -> s.ImageAnswer:
    """An image, its reconstruction, its concepts and its code."""
    return await visited.compute(lambda: explore.look(visited.opened, visited.see(image)))


@router.post("/runs/{run}/do")
async def do(visited: Visited, body: s.DoRequest, turn: Turned) -> s.DoAnswer:
    """The picture that would have been, had concepts been different."""
    return await visited.compute(
        lambda: explore.intervene(visited.opened, visited.see(body.image), body.do), turn
    )


@router.post("/runs/{run}/sweep")
async def sweep(visited: Visited, body: s.SweepRequest, turn: Turned) -> s.SweepAnswer:
    """One concept over its training range, as a film strip."""
    return await visited.compute(
        lambda: explore.sweep(
            visited.opened, visited.see(body.image), body.concept, body.do, body.count
        ),
        turn,
    )


@router.post("/runs/{run}/traverse")
async def traverse(visited: Visited, body: s.TraverseRequest, turn: Turned) -> s.TraverseAnswer:
    """The image that belongs to a code of which some numbers were changed."""
    return await visited.compute(
        lambda: explore.traverse(visited.opened, visited.see(body.image), body.codes), turn
    )


@router.post("/runs/{run}/sample")
async def sample(visited: Visited, body: s.SampleRequest) -> s.SampleAnswer:
    """New images, also from a world in which concepts are set."""
    return await visited.compute(
        lambda: explore.sample(visited.opened, body.count, body.do, body.seed)
    )


@router.post("/runs/{run}/apply")
async def apply(visited: Visited, body: s.ApplyRequest, turn: Turned) -> s.ApplyAnswer:
    """The picture after each of some actions, one upon the other."""
    return await visited.compute(
        lambda: actions.apply(visited.opened, visited.see(body.image), body.actions), turn
    )


@router.post("/runs/{run}/retrieve")
async def retrieve(visited: Visited, body: s.RetrieveRequest) -> s.RetrieveAnswer:
    """Which action made one picture of another, the most probable first."""
    return await visited.compute(
        lambda: actions.retrieve(visited.opened, visited.see(body.before), visited.see(body.after))
    )


@router.get("/runs/{run}/scores")
async def scores(state: Explorer, run: str) -> list[s.ScoreAnswer]:
    """What was measured of a run, where scores were kept in its folder."""
    entry = state.library.find(run)
    return await state.disk.run(lambda: details.stored_scores(entry.run))


@router.get("/runs/{run}/training")
async def training(
    state: Explorer, run: str, after: Annotated[int, Query(ge=0, le=10**12)] = 0
) -> s.TrainingAnswer:
    """The losses of a run, also while it trains."""
    entry = state.library.find(run)
    return await state.disk.run(lambda: details.training(entry, after))

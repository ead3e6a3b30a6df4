"""The application: routes, errors as sentences, and the page."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from disentwine.errors import DataError, DisentwineError, UsageError
from disentwine.serve.loaded_run import MissingError
from disentwine.serve.routes import ServerState, router
from disentwine.serve.run_registry import RunRegistry
from disentwine.serve.security import SecurityMiddleware, is_loopback
from disentwine.serve.static import INDEX, api_docs, media_type, page_files
from disentwine.serve.uploads import Uploads
from disentwine.serve.worker import BusyError, SupersededError, Worker

PATIENCE = 2.0
"""Seconds that a request for the model may have to wait for others before it is sent away."""

ABOUT = "Move a cause, and see the picture that would have been. Pictures are PNG data URLs."


def create_app(
    paths: Iterable[str | Path],
    *,
    host: str = "127.0.0.1",
    waiting: int = 32,
    seconds: float = 10.0,
) -> ASGIApp:
    """The explorer of some runs, ready for any ASGI server.

    Arguments:
        paths: run folders.
        host: the address it will be bound to, which decides what names it answers to.
        waiting: how many requests may wait for the model.
        seconds: how long one may take.
    """
    state = ServerState(
        registry=RunRegistry(map(Path, paths)),
        models=Worker("models", waiting=waiting, seconds=seconds, patience=PATIENCE),
        disk=Worker("disk", waiting=waiting, seconds=seconds),
        uploads=Uploads(),
    )

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        state.models.stop()
        state.disk.stop()

    # The usual pages of documentation load scripts from elsewhere; ours works without a network.
    app = FastAPI(
        title="disentwine", description=ABOUT, docs_url=None, redoc_url=None, lifespan=lifespan
    )
    app.state.explorer = state
    app.include_router(router)
    _answer_errors(app)
    app.add_api_route("/docs", _docs, include_in_schema=False)
    app.add_api_route("/{name:path}", _file, methods=["GET", "HEAD"], include_in_schema=False)
    return SecurityMiddleware(app, host=host, names=[] if is_loopback(host) else host_names())


def host_names() -> list[str]:
    """What others on the network may call this machine."""
    name = socket.gethostname()
    return [name, f"{name}.local"]


def _docs(request: Request) -> Response:
    return Response(api_docs(request.app.openapi()), media_type="text/html")


def _file(name: str) -> Response:
    """A file of the page, in its newest state."""
    files = page_files()
    wanted = name.removeprefix("page/") or INDEX
    if wanted not in files:
        return JSONResponse({"detail": "there is no such page"}, 404)
    headers = {"Cache-Control": "no-cache"}
    return Response(files[wanted].read_bytes(), media_type=media_type(wanted), headers=headers)


def _answer_errors(app: FastAPI) -> None:
    """Every refusal is {"detail": "one clear sentence"}."""

    def answer(status: int, error: object, **headers: str) -> Response:
        # A lone surrogate, which JSON may hold, has no bytes.
        detail = str(error).encode("utf-8", "replace").decode()
        return JSONResponse({"detail": detail}, status, headers)

    @app.exception_handler(MissingError)
    async def missing(_: Request, error: MissingError) -> Response:
        return answer(404, error)

    @app.exception_handler(BusyError)
    async def busy(_: Request, error: BusyError) -> Response:
        return answer(503, error, **{"Retry-After": str(error.retry_after)})

    @app.exception_handler(SupersededError)
    async def superseded(_: Request, error: SupersededError) -> Response:
        return answer(409, "superseded")

    @app.exception_handler(DisentwineError)
    async def wrong(_: Request, error: DisentwineError) -> Response:
        return answer(422 if isinstance(error, UsageError | DataError) else 400, error)

    @app.exception_handler(Exception)
    async def fault(_: Request, error: Exception) -> Response:
        return answer(500, "a fault of the server: its terminal says which")

    @app.exception_handler(HTTPException)
    async def http(_: Request, error: HTTPException) -> Response:
        return answer(error.status_code, error.detail, **dict(error.headers or {}))

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        # What was sent is not sent back: it may be huge, or hold numbers that JSON cannot tell.
        problems = error.errors()
        first = problems[0]
        place = ".".join(str(part)[:80] for part in first["loc"][1:6]) or str(first["loc"][0])
        more = f" (and {len(problems) - 1} more problems)" if len(problems) > 1 else ""
        return answer(422, f"{place}: {first['msg'][:200]}{more}")

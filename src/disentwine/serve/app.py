"""ASGI application of the explorer: routes, error answers, page files."""

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
from disentwine.serve.images import Uploads
from disentwine.serve.loaded_run import MissingError
from disentwine.serve.routes import ServerState, router
from disentwine.serve.run_registry import RunRegistry
from disentwine.serve.security import SecurityMiddleware, is_loopback
from disentwine.serve.static import INDEX, api_docs, media_type, page_files
from disentwine.serve.worker import BusyError, SupersededError, Worker

PATIENCE = 2.0
"""Seconds that a request may wait for others before it is refused."""

ABOUT = "Counterfactual images under interventions. Images are PNG data URLs."


def create_app(
    paths: Iterable[str | Path],
    *,
    host: str = "127.0.0.1",
    waiting: int = 32,
    seconds: float = 10.0,
) -> ASGIApp:
    """The explorer of some runs as an ASGI application.

    Arguments:
        paths: run folders.
        host: the address it is bound to, which decides the host names it accepts.
        waiting: maximum number of requests that wait for the model.
        seconds: maximum duration of a request.
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

    # The default API docs of FastAPI load scripts from the network; ours do not.
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
    """Names of this machine in the network."""
    name = socket.gethostname()
    return [name, f"{name}.local"]


def _docs(request: Request) -> Response:
    return Response(api_docs(request.app.openapi()), media_type="text/html")


def _file(name: str) -> Response:
    """A file of the page, not cached by the browser."""
    files = page_files()
    path = name.removeprefix("page/") or INDEX
    if path not in files:
        return JSONResponse({"detail": "there is no such page"}, 404)
    headers = {"Cache-Control": "no-cache"}
    return Response(files[path].read_bytes(), media_type=media_type(path), headers=headers)


def _answer_errors(app: FastAPI) -> None:
    """Answer every error with {"detail": "one sentence"}."""

    def answer(status: int, error: object, **headers: str) -> Response:
        # JSON may have a lone surrogate, which cannot be encoded.
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
        return answer(500, "internal server error; see the terminal of the server")

    @app.exception_handler(HTTPException)
    async def http(_: Request, error: HTTPException) -> Response:
        return answer(error.status_code, error.detail, **dict(error.headers or {}))

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        # The input is not sent back: it may be huge or have numbers that JSON cannot encode.
        problems = error.errors()
        first = problems[0]
        place = ".".join(str(part)[:80] for part in first["loc"][1:6]) or str(first["loc"][0])
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        return answer(422, f"{place}: {first['msg'][:200]}{more}")

"""disentwine serve: the interactive explorer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def serve(
    runs: Annotated[list[Path], typer.Argument(help="Run folders.")],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for any free one.")] = 8000,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Start the interactive explorer of runs: a local web page."""
    from disentwine.errors import UsageError

    try:
        from disentwine.serve.server import serve_runs
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("fastapi", "starlette", "uvicorn"):
            raise
        raise UsageError(
            f"serving needs {error.name}, which is not installed: pip install 'disentwine[serve]'"
        ) from error
    serve_runs(runs, host=host, port=port, open_page=open_page)

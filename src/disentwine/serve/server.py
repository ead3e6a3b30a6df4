"""Socket and HTTP server of the explorer."""

from __future__ import annotations

import socket
import threading
import webbrowser
from collections.abc import Iterable
from pathlib import Path

import torch
import uvicorn
from starlette.types import ASGIApp

from disentwine.errors import UsageError
from disentwine.serve.app import create_app
from disentwine.serve.security import Connection, is_loopback

BACKLOG = 256


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; an error says why the address cannot be used."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise UsageError(f"--host {host}: there is no such address ({error.strerror})") from error
    # Without the protocol, asyncio leaves Nagle's algorithm on, which delays every answer by 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise UsageError(
            f"cannot listen at {host}:{port} ({error.strerror}); choose another --port, "
            f"or 0 for any free port"
        ) from error
    return listener


def serve_runs(
    paths: Iterable[str | Path],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    open_page: bool = False,
) -> None:
    """Serve the explorer of some runs until interrupted.

    Arguments:
        paths: run folders.
        host: the address to listen on; other than loopback addresses are open to the network.
        port: 0 for any free port.
        open_page: open the page in a browser.
    """
    # For one image at a time, several threads wait longer than they compute.
    torch.set_num_threads(1)
    app = create_app(paths, host=host)
    listener = listen(host, port)
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listener.getsockname()[1]}/"
    print(f"page: {address}   (Ctrl-C to stop)", flush=True)
    if not is_loopback(host):
        print(
            "there is no authentication: everyone who reaches this address can use it", flush=True
        )
    if open_page:
        threading.Timer(0.5, webbrowser.open, (address,)).start()
    with listener:
        server_of(app).run(sockets=[listener])


def server_of(app: ASGIApp) -> uvicorn.Server:
    """The HTTP server of an application, with short timeouts for idle connections."""
    config = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        log_level="warning",
        access_log=False,
        backlog=BACKLOG,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=2,
        server_header=False,
        proxy_headers=False,
    )
    return uvicorn.Server(config)

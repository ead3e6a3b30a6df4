"""Those who keep a line busy, at a socket that really listens: others are answered all the same."""

import asyncio
import http.client
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from disentwine.serve import security as connections
from disentwine.serve.server import listen, server_of

SHORT = 0.5
EVENTS = 4
UNFINISHED = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
LARGE = 20_000_000


async def health(_: Request) -> Response:
    return PlainTextResponse("well")


async def echo(request: Request) -> Response:
    return Response(await request.body())


async def events(_: Request) -> Response:
    async def told() -> AsyncIterator[str]:
        for i in range(EVENTS):
            yield f"data: {i}\n\n"
            await asyncio.sleep(SHORT)

    return StreamingResponse(told(), media_type="text/event-stream")


async def large(_: Request) -> Response:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(LARGE // 100_000):
            yield bytes(100_000)

    return StreamingResponse(pieces())


@pytest.fixture
def server() -> Iterator[uvicorn.Server]:
    routes = [Route("/health", health), Route("/events", events), Route("/large", large)]
    app = Starlette(routes=[*routes, Route("/echo", echo, methods=["POST"])])
    listener = listen("127.0.0.1", 0)
    server = server_of(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server did not start"
        time.sleep(0.01)
    yield server
    server.should_exit = True
    thread.join(60)
    listener.close()
    assert not thread.is_alive()


@pytest.fixture
def port(server: uvicorn.Server) -> int:
    found: int = server.servers[0].sockets[0].getsockname()[1]
    return found


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "WAIT_SECONDS", SHORT)


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def ask(port: int, path: str = "/health") -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path)
    return connection


def is_closed(line: socket.socket, *, within: float = 30.0, drip: bytes = b"") -> bool:
    """Whether the other end hangs up in that time, although bytes trickle in."""
    line.settimeout(0.1)
    end = time.monotonic() + within
    while time.monotonic() < end:
        try:
            if drip:
                line.sendall(drip)
            if line.recv(1000) == b"":
                return True
        except TimeoutError:
            continue
        except ConnectionError:
            return True
    return False


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("sent", "drip"), [(b"", b""), (UNFINISHED, b""), (UNFINISHED, b"x")])
def test_a_request_that_does_not_begin_is_given_up(port: int, sent: bytes, drip: bytes) -> None:
    with connect(port) as line:
        line.sendall(sent)
        assert is_closed(line, drip=drip)


@pytest.mark.usefixtures("impatient")
def test_so_is_an_unfinished_one_after_others(port: int) -> None:
    with connect(port) as line:
        line.sendall(UNFINISHED + b"\r\n\r\n")
        assert line.recv(1000).startswith(b"HTTP/1.1 200")
        line.sendall(UNFINISHED)
        assert is_closed(line, drip=b"x", within=10)


@pytest.mark.usefixtures("impatient")
def test_a_browser_may_pause_between_requests(port: int) -> None:
    connection = ask(port)
    assert connection.getresponse().read() == b"well"
    line = connection.sock
    time.sleep(3 * SHORT)
    connection.request("GET", "/health")
    assert connection.getresponse().read() == b"well"
    assert connection.sock is line
    connection.close()


@pytest.mark.usefixtures("impatient")
def test_events_and_bodies_may_take_longer(port: int) -> None:
    stream = ask(port, "/events")
    with connect(port) as line:
        line.sendall(b"POST /echo HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 4\r\n\r\nte")
        time.sleep(2 * SHORT)
        line.sendall(b"st")
        assert line.recv(1000).startswith(b"HTTP/1.1 200")
    assert stream.getresponse().read().count(b"data:") == EVENTS
    stream.close()


@pytest.mark.usefixtures("impatient")
def test_an_answer_that_nobody_reads_is_given_up(server: uvicorn.Server, port: int) -> None:
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    with line:
        line.connect(("127.0.0.1", port))
        line.sendall(b"GET /large HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert line.recv(10).startswith(b"HTTP/1.1")
        end = time.monotonic() + 30
        while server.server_state.connections:
            assert time.monotonic() < end, "it still waits"
            time.sleep(0.05)
    reader = ask(port, "/large")
    assert len(reader.getresponse().read()) == LARGE
    reader.close()


def test_newcomers_find_room_and_who_is_being_answered_keeps_it(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 8)
    stream = ask(port, "/events")
    with ExitStack() as lines:
        for _ in range(40):
            lines.enter_context(connect(port)).sendall(UNFINISHED)
        start = time.monotonic()
        asked = ask(port)
        assert asked.getresponse().read() == b"well"
        assert time.monotonic() - start < connections.WAIT_SECONDS / 2
        asked.close()
    assert stream.getresponse().read().count(b"data:") == EVENTS
    stream.close()


def test_there_are_descriptors_left_for_files() -> None:
    assert connections.most_connections(1024) == 512
    assert connections.most_connections(200) == 100
    assert connections.most_connections(-1) == connections.most_connections(10**6) == 512

"""Connection limits, timeouts; Host/Origin/body checks, headers."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit

import h11
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

WAIT_SECONDS = 10.0
"""Seconds in which a request must arrive and an answer must be read."""

GRACE_SECONDS = 0.1
"""Seconds in which a new connection is not closed to make room."""


def most_connections(files: int) -> int:
    """Maximum number of connections for a limit on open files.

    >>> most_connections(1024), most_connections(200)
    (512, 100)
    """
    return min(512, files // 2) if files > 0 else 512


def _open_files() -> int:
    """Limit on open files of this process; -1 for none."""
    try:
        import resource
    except ImportError:  # Windows
        return -1
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


MOST_CONNECTIONS = most_connections(_open_files())


class Connection(H11Protocol):
    """A connection that is closed if its client is too slow.

    uvicorn waits for the headers of a request without limit. Here they must arrive within
    `WAIT_SECONDS`, even if some bytes arrive; between requests `timeout_keep_alive` applies. Beyond
    `MOST_CONNECTIONS`, the connection that is idle longest is closed.
    """

    _since = 0.0
    _late: asyncio.TimerHandle | None = None

    @property
    def busy(self) -> bool:
        """Whether a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._since = self.loop.time()
        self._update_timeout()
        if len(self.connections) > MOST_CONNECTIONS:
            # Many may connect at once: those that send a request immediately are served first.
            self.loop.call_later(GRACE_SECONDS, self._make_room)

    def _make_room(self) -> None:
        """Close the connection that is idle longest, or this one if all others are busy."""
        if len(self.connections) > MOST_CONNECTIONS:
            idle = [c for c in self.connections if isinstance(c, Connection) and not c.busy]
            longest = min(idle or [self], key=lambda connection: connection._since)
            self.connections.discard(longest)  # closing is delayed, and the set is counted
            longest.transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._update_timeout()

    def on_response_complete(self) -> None:
        self._since = self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._update_timeout()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_timeout()
        self._update_timeout()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timeout()
        super().connection_lost(exc)

    def _update_timeout(self) -> None:
        """Start the timeout while the client has to send or read; stop it otherwise."""
        if self.conn.their_state is not h11.IDLE and not self.flow.write_paused:
            self._stop_timeout()
        elif self._late is None:
            # `close` would wait until the client has read the answer.
            self._late = self.loop.call_later(WAIT_SECONDS, self.transport.abort)

    def _stop_timeout(self) -> None:
        if self._late is not None:
            self._late.cancel()
        self._late = None


MAX_BODY = 4_000_000

MAX_JSON = 100_000

BODY_SECONDS = 10.0

MAX_REQUESTS = 256

MAX_UPLOADS = 8

UPLOADS = "/api/uploads"

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "font-src 'self'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)

HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class RefusalError(Exception):
    """A request that is refused before it reaches the application."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


class SecurityMiddleware:
    """ASGI middleware: checks Host and Origin, limits size and duration of bodies and the number of
    parallel requests.

    A page of another site can make a browser send requests to this server, and with DNS rebinding even
    read the answers. Unexpected host names and other origins are therefore refused.

    Arguments:
        app: the application.
        host: the address that the server is bound to.
        names: further host names that are accepted.
        body_seconds: seconds in which a body must arrive.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        host: str = "127.0.0.1",
        names: Iterable[str] = (),
        body_seconds: float = BODY_SECONDS,
    ) -> None:
        self.app = app
        self.host = host
        self.names = {"localhost", host.lower(), *(name.lower() for name in names)}
        self.body_seconds = body_seconds
        self._requests = 0
        self._uploads = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        send = _with_headers(send)
        upload = scope["path"] == UPLOADS
        self._requests += 1
        self._uploads += upload
        try:
            self._check(scope)
            body = await self._read(scope, receive, MAX_BODY if upload else MAX_JSON)
            await self.app(scope, _replay(body, receive), send)
        except RefusalError as refusal:
            retry = {"Retry-After": "1"} if refusal.status == 503 else {}
            # The rest of the body is not read.
            headers = {"Connection": "close", **retry}
            answer = JSONResponse({"detail": refusal.detail}, refusal.status, headers)
            await answer(scope, receive, send)
        finally:
            self._requests -= 1
            self._uploads -= upload

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._is_ours(hosts[0]):
            raise RefusalError(421, "this Host is not accepted; use the address of the server")
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{hosts[0]}":
            raise RefusalError(403, "requests from pages of other origins are refused")
        fetched = headers.get("sec-fetch-site", "none")
        if scope["path"].startswith("/api/") and fetched not in ("same-origin", "none"):
            raise RefusalError(403, "requests from pages of other sites are refused")
        if self._requests > MAX_REQUESTS or self._uploads > MAX_UPLOADS:
            raise RefusalError(503, "too many requests at once; try again in a second")

    def _is_ours(self, host: str) -> bool:
        try:
            parts = urlsplit(f"//{host}")
            name, _ = parts.hostname, parts.port
        except ValueError:
            return False
        if not name or parts.username is not None or parts.path or parts.query or parts.fragment:
            return False
        if name in self.names:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        # DNS rebinding needs a name; which addresses reach the server is decided by its binding.
        return address.is_loopback or not is_loopback(self.host)

    async def _read(self, scope: Scope, receive: Receive, most: int) -> bytes:
        too_large = RefusalError(413, f"the body is larger than {most:,} bytes")
        length = Headers(scope=scope).get("content-length", "0")
        if not (length.isascii() and length.isdecimal()):
            raise RefusalError(400, "Content-Length must be a number")
        if len(length) > 15 or int(length) > most:
            raise too_large
        body = bytearray()
        try:
            async with asyncio.timeout(self.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise RefusalError(400, "the body ended early")
                    body += message.get("body", b"")
                    if len(body) > most:
                        raise too_large
                    if not message.get("more_body", False):
                        return bytes(body)
        except TimeoutError:
            raise RefusalError(
                408, f"the body took longer than {self.body_seconds:g} seconds"
            ) from None


def is_loopback(host: str) -> bool:
    """Whether an address is a loopback address, which other machines cannot reach.

    >>> is_loopback("127.0.0.1"), is_loopback("0.0.0.0")
    (True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body once, then later messages, such as a disconnect."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return sending

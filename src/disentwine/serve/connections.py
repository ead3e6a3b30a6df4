"""Connections: how many there may be, and how long each may keep the server waiting."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

WAIT_SECONDS = 10.0
"""How long a request may take to begin, and an answer to be read on."""

HEARING_SECONDS = 0.1
"""How long a connection is sure of its place, whoever else comes."""


def most_connections(files: int) -> int:
    """How many connections to have at once where a process may open so many files.

    >>> most_connections(1024), most_connections(200)
    (512, 100)
    """
    return min(512, files // 2) if files > 0 else 512


def _open_files() -> int:
    """How many files this process may have open; -1 where there is no limit."""
    try:
        import resource
    except ImportError:  # as on Windows
        return -1
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


MOST_CONNECTIONS = most_connections(_open_files())


class Connection(H11Protocol):
    """A connection that is closed when its other end keeps it waiting.

    uvicorn itself waits for the headers of a request as long as they take. Here they have
    `WAIT_SECONDS`, however many bytes trickle in; between requests `timeout_keep_alive` goes on to
    count. Beyond `MOST_CONNECTIONS`, who has waited longest without asking makes room.
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
        self._look()
        if len(self.connections) > MOST_CONNECTIONS:
            # Many may be let in at once: whoever asks right away is to be heard first.
            self.loop.call_later(HEARING_SECONDS, self._make_room)

    def _make_room(self) -> None:
        """Close whoever has waited longest, or oneself where all others are being answered."""
        if len(self.connections) > MOST_CONNECTIONS:
            idle = [c for c in self.connections if isinstance(c, Connection) and not c.busy]
            longest = min(idle or [self], key=lambda connection: connection._since)
            self.connections.discard(longest)  # closing takes a moment, and this one is counted
            longest.transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        self._since = self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._look()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop()
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def _look(self) -> None:
        """Begin to count where the other end has its turn, and stop where it has not."""
        if self.conn.their_state is not h11.IDLE and not self.flow.write_paused:
            self._stop()
        elif self._late is None:
            # `close` would wait for what was written to be read.
            self._late = self.loop.call_later(WAIT_SECONDS, self.transport.abort)

    def _stop(self) -> None:
        if self._late is not None:
            self._late.cancel()
        self._late = None

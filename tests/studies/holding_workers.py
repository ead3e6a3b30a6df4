"""A process whose two workers go on until they are told to stop, then say that they have saved."""

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from disentwine.studies.workers import end_if_stopped, workers
from disentwine.training.loop import GracefulStop


def hold(folder: Path) -> None:
    end_if_stopped()
    with GracefulStop() as stop:
        (folder / f"{os.getpid()}.started").touch()
        while stop.requested is None:
            time.sleep(0.01)
        (folder / f"{os.getpid()}.saved").touch()


if __name__ == "__main__":
    # A shell ignores Ctrl+C for what it starts in the background, which processes inherit.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with suppress(KeyboardInterrupt), workers(2, reused="reused" in sys.argv) as pool:
        for future in [pool.submit(hold, Path(sys.argv[1])) for _ in range(6)]:
            future.result()

"""A real browser before a real server, which serves runs that were trained for a few seconds."""

import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import pytest
import torch
from filelock import FileLock

from disentwine import VAE, data, fit
from disentwine.causal.concepts import ConceptSpec, complete_labels
from disentwine.causal.graph import Graph
from disentwine.core.model import Batch, Losses, Model
from disentwine.models import MODELS, VQVAE, LayeredCausalVAE
from disentwine.models.causal.layered_base import median_image_logits
from disentwine.models.causal.pixel_attribution import Composition
from disentwine.nn.encoders import ImageShape
from disentwine.serve.app import create_app
from disentwine.serve.server import listen, server_of

BROWSERS = ("chromium", "google-chrome")
MISSING = "the page's tests need a browser: apt-get install chromium, or install Google Chrome"
PATIENCE = 60_000  # milliseconds; a machine may be busy, and a test that passes does not wait


class Shifts(Model):
    """Actions with an exact effect: the image shifts to the right or to the left."""

    def __init__(self, *, image_shape: ImageShape) -> None:
        super().__init__()
        self.image_shape = image_shape
        self.actions = ("+right", "-right")
        self.unused = torch.nn.Parameter(torch.zeros(()))

    def loss(self, batch: Batch) -> Losses:
        return Losses({"nothing": self.unused * batch.x.mean((1, 2, 3))})

    def represent(self, x: Any) -> Any:
        return np.asarray(x, dtype=np.float64).mean(axis=(-3, -2))

    def reconstruct(self, x: Any) -> Any:
        return x

    def apply(self, x: Any, action: Any, *, times: int = 1) -> Any:
        names = [action] if isinstance(action, str) else list(action)
        steps = sum(4 if name[0] == "+" else -4 for name in names)
        return np.roll(x, times * steps, axis=-2)

    def retrieve(self, x: Any, y: Any) -> Any:
        apart = [np.square(self.apply(x, name) / 255 - y / 255).mean() for name in self.actions]
        likely = np.exp(-1000 * (np.array(apart) - min(apart)))
        return likely / likely.sum()


def small_layered(pendulum: data.Pendulum) -> LayeredCausalVAE:
    """With the graph and the masks of concepts given, which `for_data` would learn in ten seconds."""
    model = LayeredCausalVAE(
        pendulum.image_shape,
        ConceptSpec.from_dataset(pendulum),
        Graph.from_networkx(pendulum.graph, pendulum.names),
        Composition(((0,), (1,), (2, 3)), ((14, 7, 28, 26), (3, 3, 9, 30), (26, 6, 29, 30))),
    )
    with torch.no_grad():
        model.decoder.background.copy_(median_image_logits(pendulum))
        model.labels.fill(model.standardise(torch.from_numpy(complete_labels(pendulum))))
    return model


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of the page run in one process, with one browser and one server."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("page"))


@pytest.fixture(scope="package")
def page_runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Path]]:
    """An accurate causal run, a poor one, one without concepts, one with actions, one with a codebook.

    Made once, also for several test processes. The toy model and the browser, whose event loop blocks
    all others, stay for the package: its tests are one group and run one after the other.
    """
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "page-runs"
    MODELS["shifts"] = Shifts
    with FileLock(folder.with_suffix(".lock")):
        if not folder.exists():
            pendulum = data.Pendulum(size=32)
            pendulum.split = {**pendulum.split, "validation": pendulum.split["validation"][:32]}
            torch.manual_seed(0)
            usual: dict[str, Any] = {"threads": 1, "progress": False, "device": "cpu"}
            rates = {"learning_rate": 0.003, "final_learning_rate": 2e-5}
            good, shifts = small_layered(pendulum), Shifts.for_data(pendulum)
            fit(good, pendulum, out=folder / "good", steps=300, batch_size=32, **rates, **usual)
            fit(small_layered(pendulum), pendulum, out=folder / "poor", steps=2, **usual)
            quantized = VQVAE.for_data(pendulum, codebook_size=8, channels=8)
            plain = VAE.for_data(pendulum)
            for model, name in ((plain, "plain"), (shifts, "shifts"), (quantized, "quantized")):
                fit(model, pendulum, out=folder / name, steps=1, batch_size=4, **usual)
    yield [folder / name for name in ("good", "poor", "plain", "shifts", "quantized")]
    del MODELS["shifts"]


@pytest.fixture(scope="package")
def address(page_runs: list[Path]) -> Iterator[str]:
    """Where the page is."""
    listener = listen("127.0.0.1", 0)
    server = server_of(create_app(page_runs, seconds=60))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server did not start"
        time.sleep(0.02)
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    thread.join(timeout=20)
    listener.close()


@pytest.fixture(scope="package")
def run_ids(address: str) -> dict[str, str]:
    """The id of each run, by name."""
    with urlopen(f"{address}/api/runs") as answer:
        return {run["name"]: run["id"] for run in json.load(answer)}


@pytest.fixture
def hold() -> Callable[..., Callable[..., None]]:
    """Keep the next requests to some place from their answers."""

    def hold(page: Any, where: str, *, requests: int = 1) -> Callable[..., None]:
        """Call what is returned to let them through, or to refuse them, once all have come; as a
        server that is gone where the status is 0."""
        held: list[Any] = []
        page.route(where, lambda route: held.append(route), times=requests)

        def release(*, refuse: str = "", status: int = 422) -> None:
            while len(held) < requests:
                page.wait_for_timeout(20)
            for route in held:
                if refuse and status == 0:
                    route.abort()
                elif refuse:
                    route.fulfill(status=status, json={"detail": refuse})
                else:
                    route.continue_()

        return release

    return hold


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """Debian's Chromium or Chrome; nothing is downloaded. In CI, to have none is a failure."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        if os.environ.get("CI") == "true":
            pytest.fail(MISSING)
        pytest.skip(MISSING)
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    # Chromium refuses to be sandboxed for root, as tests in containers are.
    arguments = ["--disable-gpu", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with playwright.sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=found, args=arguments, timeout=PATIENCE, headless=True
        )
        yield browser
        browser.close()


@pytest.fixture
def visit(browser: Any, address: str) -> Iterator[Callable[..., Any]]:
    """Open the page in a visit of its own; whatever its console complains of is a failure.

    A test that provokes complaints puts words of theirs into `visit.foreseen` before: a browser may
    tell of them late.
    """
    contexts: list[Any] = []
    complaints: list[str] = []
    foreseen: list[str] = []

    def visit(
        place: str = "", *, expect: str = ".view", phone: bool = False, **options: Any
    ) -> Any:
        size = {"width": 390, "height": 844} if phone else {"width": 1280, "height": 800}
        context = browser.new_context(viewport=size, has_touch=phone, **options)
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda said: said.type == "error" and complaints.append(said.text))
        page.goto(place if "://" in place else f"{address}/{place}")
        page.wait_for_selector(expect)
        return page

    visit.foreseen = foreseen  # type: ignore[attr-defined]
    yield visit
    for context in contexts:
        context.close()
    assert not [said for said in complaints if not any(words in said for words in foreseen)]

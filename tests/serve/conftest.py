"""Small runs, and clients of the explorer that serves them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from disentwine import VAE, CausalVAE, data, fit
from disentwine.serve.app import create_app

ADDRESS = "http://127.0.0.1:8000"


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A causal run and a plain one, hardly trained."""
    folder = tmp_path_factory.mktemp("runs")
    pendulum = data.Pendulum(size=32)
    options = {"steps": 2, "batch_size": 8, "threads": 1}
    causal = CausalVAE.for_data(pendulum, edges=tuple(pendulum.graph.edges))
    fit(causal, pendulum, out=folder / "causal", **options)
    fit(VAE.for_data(pendulum, latent=3), pendulum, out=folder / "plain", **options)
    return folder


@pytest.fixture(scope="session")
def client(runs: Path) -> Iterator[TestClient]:
    app = create_app([runs / "causal", runs / "plain"])
    with TestClient(app, base_url=ADDRESS, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="session")
def ids(client: TestClient) -> dict[str, str]:
    """The id of each run, by name."""
    listed: list[dict[str, Any]] = client.get("/api/runs").json()
    return {run["name"]: run["id"] for run in listed}


@pytest.fixture(scope="session")
def causal(ids: dict[str, str]) -> str:
    """Where the causal run is."""
    return f"/api/runs/{ids['causal']}"


@pytest.fixture(scope="session")
def plain(ids: dict[str, str]) -> str:
    """Where the plain run is."""
    return f"/api/runs/{ids['plain']}"

"""Python, command and HTTP API agree on interventions (docs/decisions/0019-one-range-rule.md)."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from starlette.testclient import TestClient
from tests.serve.conftest import ADDRESS

from disentwine import CausalVAE, data, fit
from disentwine.cli.do import do as command
from disentwine.core.dataset import display_order
from disentwine.errors import UsageError
from disentwine.runs.run import load_run
from disentwine.serve.app import create_app

COLOURS = ("blue", "green", "red")
NOT_A_COLOUR = "'colour' is one of blue, green, red, or its number from 0 to 2; got"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A causal run on squares with a colour and a size."""
    folder = tmp_path_factory.mktemp("squares")
    rng, rows = np.random.default_rng(0), ["file,colour,size"]
    for i in range(40):
        colour, size = COLOURS[i % 3], 4 + i % 10
        pixels = np.full((16, 16, 3), 255, np.uint8)
        pixels[:size, :size] = rng.integers(0, 255, 3)
        Image.fromarray(pixels).save(folder / f"{i}.png")
        rows.append(f"{i}.png,{colour},{size + i / 100}")
    (folder / "concepts.csv").write_text("\n".join(rows))
    squares = data.Folder(path=folder, size=32)
    model = CausalVAE.for_data(squares, edges=(("colour", "size"),))
    fit(model, squares, out=folder / "run", steps=2, batch_size=8, threads=1)
    return folder / "run"


@pytest.fixture(scope="module")
def client(run: Path) -> Iterator[TestClient]:
    with TestClient(create_app([run]), base_url=ADDRESS) as client:
        yield client


class Entries:
    """One intervention on test image t-0 at each of three entry points."""

    def __init__(self, run: Path, client: TestClient, folder: Path) -> None:
        self.run, self.client, self.folder = run, client, folder
        self.loaded = load_run(run)
        self.model: Any = self.loaded.model
        dataset = self.loaded.dataset
        self.image = dataset.images[int(display_order(dataset.split)[0])]

    def python(self, do: dict[str, Any]) -> tuple[Any, list[str]]:
        found = self.model.counterfactual(self.image, do)
        return found.after, [value.name for value in found.beyond]

    def printed(self, do: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> str:
        words = [f"{name}={value}" for name, value in do.items()]
        target = self.folder / "x.png"
        target.unlink(missing_ok=True)
        command(self.run, Path("t-0"), words, out=target)
        return capsys.readouterr().out

    def api(self, do: dict[str, Any]) -> Any:
        name = self.client.get("/api/runs").json()[0]["id"]
        body = json.dumps({"image": "t-0", "do": do})  # NaN, too
        headers = {"Content-Type": "application/json"}
        return self.client.post(f"/api/runs/{name}/do", content=body, headers=headers)


@pytest.fixture
def entries(run: Path, client: TestClient, tmp_path: Path) -> Entries:
    return Entries(run, client, tmp_path)


@pytest.mark.parametrize(
    ("do", "beyond"),
    [
        ({"colour": "red"}, []),
        ({"colour": 2}, []),
        ({"colour": 2.0}, []),
        ({"size": 8}, []),
        ({"size": 13.9}, []),
        ({"size": 20}, ["size"]),
        ({"colour": "green", "size": 20}, ["size"]),
    ],
)
def test_an_intervention_has_one_outcome(
    entries: Entries, do: dict[str, Any], beyond: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    after, python_beyond = entries.python(do)
    answer = entries.api(do).json()
    printed = entries.printed(do, capsys)
    assert python_beyond == answer["outside_range"] == beyond
    assert ("outside the training range" in printed) == bool(beyond)
    np.testing.assert_allclose(list(answer["after"].values()), after, rtol=1e-4)


@pytest.mark.parametrize(
    ("do", "message"),
    [
        ({"colour": "pink"}, NOT_A_COLOUR),
        ({"colour": 5}, NOT_A_COLOUR),
        ({"colour": 1.5}, NOT_A_COLOUR),
        ({"size": math.nan}, "'size' must be a finite number, got nan"),
        ({"size": math.inf}, "'size' must be a finite number, got inf"),
        ({"siez": 8}, "there is no concept 'siez'. Did you mean 'size'?"),
    ],
)
def test_an_error_has_one_wording(
    entries: Entries, do: dict[str, Any], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError) as python:
        entries.python(do)
    with pytest.raises(UsageError) as printed:
        entries.printed(do, capsys)
    answer = entries.api(do)
    assert answer.status_code == 422
    for text in (str(python.value), str(printed.value), answer.json()["detail"]):
        assert message in text


def test_only_the_page_refuses_absurd_values(
    entries: Entries, capsys: pytest.CaptureFixture[str]
) -> None:
    assert entries.python({"size": 500})[1] == ["size"]
    assert "note: size=500" in entries.printed({"size": 500}, capsys)
    answer = entries.api({"size": 500})
    assert answer.status_code == 422
    assert "too far outside the training range" in answer.json()["detail"]


@pytest.mark.parametrize("value", [True, None, [1], {"a": 1}])
def test_other_json_values_are_refused(entries: Entries, value: Any) -> None:
    answer = entries.api({"size": value})
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith("do.size")

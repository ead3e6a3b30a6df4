"""Every route, on runs that were hardly trained: what is answered is what the library answers."""

import base64
import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from starlette.testclient import TestClient

from disentwine.core.score import Score
from disentwine.metrics.registry import METRICS
from disentwine.runs.checkpoint import save_checkpoint
from disentwine.runs.run import Run, keep_scores, load_run
from disentwine.serve.app import create_app
from disentwine.training.callbacks import Checkpoint


def picture(url: str) -> np.ndarray[Any, Any]:
    """The pixels of a data URL."""
    head, _, content = url.partition(",")
    assert head == "data:image/png;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(content))))


@pytest.fixture(scope="module")
def run(runs: Path) -> Run:
    return load_run(runs / "causal")


def example(run: Run, number: int) -> int:
    """The index of the image that is called t-<number>."""
    return int(np.random.default_rng(0).permutation(run.dataset.split["test"])[number])


def test_runs_are_listed_by_opaque_ids(client: TestClient, runs: Path) -> None:
    listed = client.get("/api/runs").json()
    assert [run["name"] for run in listed] == ["causal", "plain"]
    assert [run["model"] for run in listed] == ["causal-vae", "vae"]
    assert {"intervenes", "generates", "represents"} <= set(listed[0]["capabilities"])
    assert {"decodes"} <= set(listed[1]["capabilities"])
    assert "intervenes" not in listed[1]["capabilities"]
    assert listed[0]["simulator"]
    assert listed[0]["finished"]
    assert all(run["id"].isalnum() for run in listed)
    assert str(runs) not in json.dumps(listed)


def test_details_lay_out_the_page(client: TestClient, causal: str, plain: str, run: Run) -> None:
    details = client.get(causal).json()
    assert details["shape"] == [32, 32, 3]
    assert details["examples"] == len(run.dataset.split["test"])
    light = details["concepts"][1]
    column = run.dataset.column("light_angle")[run.dataset.split["train"]]
    assert (light["name"], light["label"]) == ("light_angle", "light angle")
    assert (light["unit"], light["kind"]) == ("degrees", "continuous")
    assert (light["low"], light["high"]) == (column.min(), column.max())
    assert 0 < light["step"] < 1
    edges = {(edge["source"], edge["target"]) for edge in details["graph"]["edges"]}
    assert edges == set(run.model.graph.edges)
    assert {(e["source"], e["target"]) for e in details["true_graph"]["edges"]} == edges
    names, learnt = run.model.graph.names, run.model.graph.weights
    for edge in details["graph"]["edges"]:
        weight = learnt[names.index(edge["source"]), names.index(edge["target"])]
        assert edge["weight"] == pytest.approx(weight)
    assert (details["latent_count"], details["latent_names"]) == (4, list(names))
    assert details["actions"] == []
    assert "causal-vae" in details["recipe"]
    other = client.get(plain).json()
    assert (other["latent_count"], other["latent_names"]) == (3, ["z0", "z1", "z2"])
    assert (other["graph"], other["concepts"], other["latent_layers"]) == (None, [], [])


def test_images_are_a_fixed_choice(client: TestClient, causal: str, run: Run) -> None:
    first = client.get(f"{causal}/images", params={"offset": 3, "count": 2}).json()
    assert [image["image"] for image in first] == ["t-3", "t-4"]
    np.testing.assert_array_equal(
        picture(first[0]["thumbnail"]), run.dataset.images[example(run, 3)]
    )
    assert client.get(f"{causal}/images?offset=999999").json() == []


def test_an_image_beside_its_reconstruction(client: TestClient, causal: str, run: Run) -> None:
    index = example(run, 0)
    original = run.dataset.images[index]
    answer = client.get(f"{causal}/images/t-0").json()
    np.testing.assert_array_equal(picture(answer["original"]), original)
    np.testing.assert_array_equal(
        picture(answer["reconstruction"]), run.model.reconstruct(original)
    )
    values = dict(zip(run.model.concept_names, run.model.concepts(original), strict=True))
    assert answer["values"] == pytest.approx(values, rel=1e-6)
    truth = dict(zip(run.dataset.names, run.dataset.factors[index], strict=True))
    assert answer["truth"] == pytest.approx(truth)
    assert answer["latents"] == pytest.approx(run.model.represent(original).tolist(), rel=1e-5)


def test_do_is_what_the_library_does(client: TestClient, causal: str, run: Run) -> None:
    index = example(run, 5)
    original, do = run.dataset.images[index], {"light_angle": 70.0, "shadow_length": 5.0}
    answer = client.post(f"{causal}/do", json={"image": "t-5", "do": do}).json()
    made = run.model.do(original, do)
    drawn = run.dataset.simulate(run.dataset.factors[[index]], do).images[0]
    np.testing.assert_array_equal(picture(answer["image"]), made)
    np.testing.assert_array_equal(picture(answer["truth"]), drawn)
    apart = np.abs(made.astype(int) - drawn)
    np.testing.assert_array_equal(picture(answer["difference"]), apart)
    assert answer["error"]["model"] == pytest.approx(np.mean((apart / 255) ** 2), rel=1e-5)
    nothing = np.mean(((original.astype(int) - drawn) / 255) ** 2)
    assert answer["error"]["unchanged"] == pytest.approx(nothing, rel=1e-5)
    assert answer["after"]["light_angle"] == pytest.approx(70, rel=1e-5)
    assert answer["after"]["pendulum_angle"] == answer["before"]["pendulum_angle"]
    assert sorted(answer["removed_edges"]) == [
        ["light_angle", "shadow_length"],
        ["pendulum_angle", "shadow_length"],
    ]
    assert answer["affected"] == ["shadow_position"]
    assert answer["milliseconds"] > 0


def test_doing_nothing_is_the_reconstruction(client: TestClient, causal: str) -> None:
    answer = client.post(f"{causal}/do", json={"image": "t-1"}).json()
    assert answer["image"] == answer["reconstruction"]
    assert answer["before"] == answer["after"]
    assert (answer["removed_edges"], answer["affected"]) == ([], [])
    assert answer["error"]["unchanged"] == 0


def test_a_sweep_is_many_dos(client: TestClient, causal: str) -> None:
    body = {"image": "t-2", "concept": "light_angle", "do": {"pendulum_angle": 0}, "count": 3}
    answer = client.post(f"{causal}/sweep", json=body).json()
    assert len(answer["values"]) == len(answer["images"]) == len(answer["truths"]) == 3
    do = {"pendulum_angle": 0, "light_angle": answer["values"][2]}
    one = client.post(f"{causal}/do", json={"image": "t-2", "do": do}).json()
    assert one["truth"] == answer["truths"][2]
    apart = picture(one["image"]).astype(int) - picture(answer["images"][2])
    assert np.abs(apart).max() <= 1  # a batch may round otherwise than one image


def test_single_concepts_are_traversed_with_all_others_held(
    client: TestClient, causal: str, run: Run
) -> None:
    factual = run.dataset.images[example(run, 0)]
    codes, values = run.model.represent(factual), run.model.concepts(factual)
    body = {"image": "t-0", "latents": {"1": float(codes[1]) + 1}}
    answer = client.post(f"{causal}/traverse", json=body).json()
    values[1] += run.model.concept_spec.concepts[1].std
    held = dict(zip(run.model.concept_names, values.tolist(), strict=True))
    found, expected = picture(answer["image"]), run.model.do(factual, held)
    assert np.abs(found.astype(int) - expected).max() <= 1


def test_codes_are_traversed(client: TestClient, plain: str, runs: Path) -> None:
    body = {"image": "t-0", "latents": {"1": 2.5}}
    answer = client.post(f"{plain}/traverse", json=body).json()
    own = client.get(f"{plain}/images/t-0").json()
    assert answer["latents"][1] == 2.5
    assert answer["latents"][::2] == own["latents"][::2]
    assert len(answer["ranges"]) == 3
    assert all(low < high for low, high in answer["ranges"])
    unmoved = client.post(f"{plain}/traverse", json={"image": "t-0"}).json()
    assert unmoved["image"] == own["reconstruction"]
    assert answer["image"] != own["reconstruction"]


def test_new_images_are_drawn(client: TestClient, causal: str, plain: str) -> None:
    body = {"count": 2, "seed": 3}
    first, again = (client.post(f"{plain}/sample", json=body).json() for _ in range(2))
    assert first == again
    assert len(first["images"]) == 2
    fresh, other = (client.post(f"{plain}/sample", json={"count": 1}).json() for _ in range(2))
    assert fresh != other
    set_world = {"count": 3, "do": {"light_angle": 60}}
    assert len(client.post(f"{causal}/sample", json=set_world).json()["images"]) == 3


def test_a_picture_is_sent_and_moved(client: TestClient, ids: dict[str, str], run: Run) -> None:
    original = run.dataset.images[7]
    content = io.BytesIO()
    Image.fromarray(original).save(content, "PNG")
    sent = client.post(f"/api/uploads?run={ids['causal']}", content=content.getvalue()).json()
    assert sent["image"].startswith("u-")
    np.testing.assert_array_equal(picture(sent["thumbnail"]), original)
    body = {"image": sent["image"], "do": {"light_angle": 70}}
    for name in ("causal", "plain"):  # the other run may look at it too
        looked = client.get(f"/api/runs/{ids[name]}/images/{sent['image']}").json()
        np.testing.assert_array_equal(picture(looked["original"]), original)
        assert looked["truth"] is None
    answer = client.post(f"/api/runs/{ids['causal']}/do", json=body).json()
    made = run.model.do(original, light_angle=70.0)
    np.testing.assert_array_equal(picture(answer["image"]), made)
    assert (answer["truth"], answer["difference"], answer["error"]) == (None, None, None)


@pytest.mark.parametrize(
    ("where", "body", "status", "hint"),
    [
        ("causal/do", {"image": "t-0", "do": {"lihgt_angle": 6}}, 422, "Did you mean 'light_angle"),
        ("causal/do", {"image": "t-0", "do": {"light_angle": 1e5}}, 422, "training range"),
        (
            "causal/do",
            {"image": "t-0", "do": {"light_angle": "6"}},
            422,
            "'light_angle' needs a number",
        ),
        ("causal/do", {"image": "t-9999"}, 404, "t-0 to t-"),
        ("causal/do", {"image": "u-gone"}, 404, "upload it again"),
        ("causal/do", {"image": "t-0", "doo": {}}, 422, "doo"),
        ("causal/sweep", {"image": "t-0", "concept": "x"}, 422, "no concept"),
        ("causal/sweep", {"image": "t-0", "concept": "light_angle", "count": 16}, 422, "count"),
        ("causal/apply", {"image": "t-0", "actions": ["+x"]}, 404, "actions"),
        ("causal/retrieve", {"before": "t-0", "after": "t-1"}, 404, "actions"),
        ("causal/sample", {"count": 17}, 422, "count"),
        ("plain/do", {"image": "t-0", "do": {"light_angle": 1}}, 404, "no concepts"),
        ("plain/sample", {"do": {"light_angle": 1}}, 404, "intervention"),
        ("plain/traverse", {"image": "t-0", "latents": {"3": 0}}, 422, "last is 2"),
        ("plain/traverse", {"image": "t-0", "latents": {"0": 1e300}}, 422, "too far"),
        ("nothing/do", {"image": "t-0"}, 404, "no such run"),
    ],
)
def test_what_cannot_be_done_is_said(
    client: TestClient, ids: dict[str, str], where: str, body: Any, status: int, hint: str
) -> None:
    run, route = where.split("/")
    answer = client.post(f"/api/runs/{ids.get(run, run)}/{route}", json=body)
    assert answer.status_code == status
    assert hint in answer.json()["detail"]


def test_losses_and_scores(client: TestClient, causal: str, runs: Path) -> None:
    answer = client.get(f"{causal}/training").json()
    assert answer["finished"]
    assert (answer["step"], answer["steps"]) == (2, 2)
    assert {"kind", "step", "loss"} <= answer["rows"][-1].keys()
    assert client.get(f"{causal}/training?after=2").json()["rows"] == []
    assert client.get(f"{causal}/scores").json() == []
    scores = [{"name": "mig", "value": 0.5, "n": 10, "noise_floor": None, "details": {}}]
    (runs / "causal" / "scores.json").write_text(json.dumps({"scores": scores}))
    try:
        about = METRICS["mig"].about
        expected = [{"name": "mig", "value": 0.5, "n": 10, "noise_floor": None, "about": about}]
        assert client.get(f"{causal}/scores").json() == expected
        own = Score("sap", 0.25, n=7, noise_floor=0.125, details={"about": "mine"})
        keep_scores(load_run(runs / "causal"), [own])
        (kept,) = client.get(f"{causal}/scores").json()
        assert (kept["name"], kept["noise_floor"], kept["about"]) == ("sap", 0.125, "mine")
        for damaged in ("7", '{"scores": 7}', '{"scores": [{"name": "x", "value": "y"}]}'):
            (runs / "causal" / "evaluation.json").write_text(damaged)
            assert client.get(f"{causal}/scores").status_code == 200
    finally:
        (runs / "causal" / "scores.json").unlink()
        (runs / "causal" / "evaluation.json").unlink(missing_ok=True)


def test_a_long_log_is_thinned_with_both_ends_kept(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "plain", tmp_path / "run")
    log = tmp_path / "run" / "metrics.jsonl"
    kinds = ["train"] * 2000 + ["validation"] * 2
    log.write_text(
        "".join(f'{{"kind": "{kind}", "step": {i}, "loss": NaN}}\n' for i, kind in enumerate(kinds))
    )
    with TestClient(create_app([tmp_path / "run"]), base_url="http://127.0.0.1") as client:
        name = client.get("/api/runs").json()[0]["id"]
        rows = client.get(f"/api/runs/{name}/training").json()["rows"]
    assert len(rows) == 252
    assert [row["step"] for row in rows[249:]] == [1999, 2000, 2001]
    assert rows[0]["step"] == 0
    assert rows[0]["loss"] is None


@pytest.mark.parametrize(
    "line",
    ['{"kind": "train", "loss": 1}', '{"step": 1}', '{"kind": 1, "step": "x"}', "[1]", "7", "null"],
)
def test_what_is_no_record_of_a_log_is_passed_over(runs: Path, tmp_path: Path, line: str) -> None:
    shutil.copytree(runs / "plain", tmp_path / "run")
    log = tmp_path / "run" / "metrics.jsonl"
    log.write_text(f'{line}\n{{"kind": "train", "step": 3, "loss": 0.5}}\n')
    app = create_app([tmp_path / "run"])
    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        name = client.get("/api/runs").json()[0]["id"]
        answer = client.get(f"/api/runs/{name}/training")
        log.write_text("{\n")
        damaged = client.get(f"/api/runs/{name}/training")
    assert answer.status_code == 200
    assert answer.json()["rows"] == [{"kind": "train", "step": 3, "loss": 0.5}]
    assert damaged.status_code == 400
    assert damaged.json()["detail"].startswith("run/metrics.jsonl, line 1: damaged")


def test_newer_weights_are_taken_up(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("disentwine.serve.run_registry.FRESH_SECONDS", 0.0)
    path = tmp_path / "run"
    shutil.copytree(runs / "plain", path)
    Run(path).write_status(state="unfinished")
    saved = Run(path).checkpoint
    with TestClient(create_app([path]), base_url="http://127.0.0.1") as client:
        where = f"/api/runs/{client.get('/api/runs').json()[0]['id']}"
        before = client.get(f"{where}/images/t-0").json()["latents"]
        moved = {name: value + 0.01 for name, value in saved.weights.items()}
        state = {k: v for k, v in saved.state.items() if k not in ("digest", "files", "step")}
        state["best"] = {**(state.get("best") or {}), "step": 5}
        save_checkpoint(path / "checkpoints", Checkpoint(5, moved, saved.training, state))
        assert client.get(where).json()["step"] == 5
        assert client.get(f"{where}/images/t-0").json()["latents"] != before


def test_a_run_without_weights_can_be_watched(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "plain", tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    with TestClient(create_app([tmp_path / "run"]), base_url="http://127.0.0.1") as client:
        listed = client.get("/api/runs").json()[0]
        assert listed["capabilities"] == []
        where = f"/api/runs/{listed['id']}"
        assert client.get(f"{where}/training").json()["rows"]
        refused = client.get(where)
        assert refused.status_code == 404
        assert "no checkpoint yet" in refused.json()["detail"]

"""Requests that nobody should make: refused with a sentence, and the server lives on."""

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from disentwine.serve import security as guard
from disentwine.serve.app import create_app

QUICK = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
ROUTES = ("do", "sweep", "traverse", "sample", "apply", "retrieve")
FIELDS = ("image", "do", "concept", "count", "latents", "actions", "before", "after", "seed")
numbers = st.one_of(
    st.floats(), st.integers(), st.sampled_from([1e308, -1e308, 1e-320, 2**70, float("nan")])
)
names = st.one_of(st.sampled_from(["light_angle", "pendulum_angle", "t-0", "0", "-1"]), st.text())
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, names),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(names, inner)),
    max_leaves=6,
)
bodies = st.one_of(
    st.dictionaries(st.sampled_from(FIELDS), values),
    st.fixed_dictionaries(
        {"image": st.just("t-0")},
        optional={
            "do": st.dictionaries(names, numbers),
            "latents": st.dictionaries(names, numbers),
            "concept": names,
            "count": numbers,
            "actions": st.lists(names),
        },
    ),
    values,
)


def check(answer: Any, *statuses: int) -> None:
    """A refusal is one sentence; nothing is ever the server's fault."""
    assert answer.status_code == 200 or 400 <= answer.status_code < 500, answer.text
    assert not statuses or answer.status_code in statuses, (answer.status_code, answer.text)
    if answer.status_code != 200:
        assert isinstance(answer.json()["detail"], str)
        assert len(answer.content) < 2000


@QUICK
@given(route=st.sampled_from(ROUTES), plainly=st.booleans(), body=bodies)
def test_any_json(
    client: TestClient, causal: str, plain: str, route: str, plainly: bool, body: Any
) -> None:
    where = f"{plain if plainly else causal}/{route}"
    headers = {"content-type": "application/json"}
    check(client.post(where, content=json.dumps(body), headers=headers))


@QUICK
@given(route=st.sampled_from(ROUTES), body=st.binary(max_size=200))
def test_any_bytes(client: TestClient, causal: str, route: str, body: bytes) -> None:
    headers = {"content-type": "application/json"}
    check(client.post(f"{causal}/{route}", content=body, headers=headers), 400, 422)


@QUICK
@given(parts=st.lists(st.sampled_from(["..", "%2e%2e", "%2f", "etc", "passwd", "api", "page", ""])))
def test_no_path_leads_outside(client: TestClient, parts: list[str]) -> None:
    answer = client.get("http://127.0.0.1:8000/" + "/".join(parts))
    check(answer)
    assert b"root:" not in answer.content


@pytest.mark.parametrize(
    "path",
    [
        "/..%2f..%2fapp.py",
        "/page/../app.py",
        "/page/%2e%2e/app.py",
        "/app.py",
        "/%00",
        "/api/runs/..%2f..%2fetc",
        "/api/runs/{id}/images/..%2f..%2fscores.json",
        "/api/runs/{id}/images/t-%0a1",
        "/api/runs/{id}/images/t-\u0661",
        "/api/runs/{id}/images/t-" + "9" * 5000,
        "/api/nothing",
    ],
)
def test_only_what_is_listed_is_found(client: TestClient, ids: dict[str, str], path: str) -> None:
    check(client.get(path.replace("{id}", ids["causal"])), 404)


@pytest.mark.parametrize(
    "query", ["images?offset=-1", "images?count=1000", "images?count=x", "training?after=1e9"]
)
def test_wrong_queries(client: TestClient, causal: str, query: str) -> None:
    check(client.get(f"{causal}/{query}"), 422)


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 50_000,
        b'{"image": "t-0", "do": ' + b'{"a":' * 9000 + b"1" + b"}" * 9001,
        b'{"image": "t-0", "do": {"light_angle": ' + b"9" * 50_000 + b"}}",
        b'{"image": "' + b"t" * 50_000 + b'"}',
        json.dumps({"image": "t-0", "do": {str(i): 0 for i in range(5000)}}).encode(),
    ],
)
def test_deep_and_huge_json(client: TestClient, causal: str, body: bytes) -> None:
    answer = client.post(f"{causal}/do", content=body, headers={"content-type": "application/json"})
    check(answer, 400, 422)


def test_bodies_are_bounded(client: TestClient, causal: str, ids: dict[str, str]) -> None:
    check(client.post(f"{causal}/do", content=b" " * (guard.MAX_JSON + 1)), 413)
    upload = f"/api/uploads?run={ids['causal']}"
    check(client.post(upload, content=b"\x89PNG" + b"x" * guard.MAX_BODY), 413)
    pieces = (b"x" * 100_000 for _ in range(100))  # no length is told beforehand
    check(client.post(upload, content=pieces), 413)
    for length in ("-1", "1e9", "9" * 400):
        check(client.get("/api/health", headers={"content-length": length}), 400, 413)


def test_a_slow_body_is_given_up() -> None:
    async def reached(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError("the application must not be asked")

    sent: list[Any] = []

    async def receive() -> Any:
        await asyncio.sleep(60)

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/uploads",
        "headers": [(b"host", b"127.0.0.1"), (b"content-length", b"100")],
    }
    asyncio.run(guard.SecurityMiddleware(reached, body_seconds=0.01)(scope, receive, send))
    assert sent[0]["status"] == 408


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "10.0.0.1", "a@localhost"],
)
def test_other_hosts_are_refused(client: TestClient, host: str) -> None:
    for path in ("/api/runs", "/", "/openapi.json"):
        check(client.get(path, headers={"host": host}), 421)


@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1", "[::1]:8000", "LOCALHOST"])
def test_own_hosts_are_answered(client: TestClient, host: str) -> None:
    assert client.get("/api/health", headers={"host": host}).status_code == 200


def test_a_server_for_others_answers_to_numbers_and_its_own_name(runs: Path) -> None:
    app = create_app([runs / "plain"], host="0.0.0.0")
    name = socket.gethostname()
    with TestClient(app, base_url="http://192.168.1.7:8000") as client:
        for host in ("192.168.1.7:8000", f"{name}:8000", f"{name}.local", name.upper()):
            assert client.get("/api/health", headers={"host": host}).status_code == 200, host
        for host in ("evil.example", f"{name}.evil.example"):
            check(client.get("/api/health", headers={"host": host}), 421)


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "http://localhost:3000"},
        {"origin": "https://127.0.0.1:8000"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_other_origins_are_refused(
    client: TestClient, causal: str, headers: dict[str, str]
) -> None:
    check(client.get(causal, headers=headers), 403)
    check(client.post(f"{causal}/do", json={"image": "t-0"}, headers=headers), 403)


def test_the_own_origin_is_answered(client: TestClient, causal: str) -> None:
    headers = {"origin": "http://127.0.0.1:8000", "sec-fetch-site": "same-origin"}
    answer = client.post(f"{causal}/do", json={"image": "t-0"}, headers=headers)
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "headers", [{"x-sequence": "x"}, {"x-sequence": "-1"}, {"x-client": "c" * 100}]
)
def test_wrong_headers(client: TestClient, causal: str, headers: dict[str, str]) -> None:
    check(client.post(f"{causal}/do", json={"image": "t-0"}, headers=headers), 422)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(client: TestClient, causal: str, method: str) -> None:
    assert client.request(method, f"{causal}/do").status_code == 405


def test_it_still_answers(client: TestClient, causal: str) -> None:
    body = {"image": "t-0", "do": {"light_angle": 70}}
    assert client.post(f"{causal}/do", json=body).status_code == 200

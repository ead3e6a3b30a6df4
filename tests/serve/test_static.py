"""The page's files, the headers they come with, and documentation that needs no network."""

import re

import pytest
from starlette.testclient import TestClient

from disentwine.serve.security import HEADERS
from disentwine.serve.static import TYPES, page_files


def test_the_page_is_served_with_strict_headers(client: TestClient) -> None:
    answer = client.get("/")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == TYPES["html"]
    assert answer.headers["cache-control"] == "no-cache"
    for name, value in HEADERS.items():
        assert answer.headers[name] == value
    assert "unsafe" not in HEADERS["Content-Security-Policy"]
    assert client.head("/").status_code == 200


def test_every_file_has_its_type(client: TestClient) -> None:
    for name in page_files():
        answer = client.get(f"/{name}")
        assert answer.status_code == 200
        assert answer.headers["content-type"] == TYPES[name.rpartition(".")[2]]
        assert client.get(f"/page/{name}").content == answer.content


def test_refusals_carry_the_same_headers(client: TestClient) -> None:
    for answer in (
        client.get("/nothing.js"),
        client.get("/api/runs/none"),
        client.get("/", headers={"host": "evil.example"}),
    ):
        assert answer.status_code >= 400
        assert answer.headers["content-security-policy"] == HEADERS["Content-Security-Policy"]
        assert answer.headers["content-type"] == "application/json"


def test_documentation_needs_no_network(client: TestClient) -> None:
    page = client.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert not re.findall(r"(?:src|href)=[\"']?https?:", page.text)
    assert "<script" not in page.text
    described = client.get("/openapi.json").json()
    for path in described["paths"]:
        assert path in page.text
    links = set(re.findall(r'href="#(\w+)"', page.text))
    assert links <= set(re.findall(r'id="(\w+)"', page.text))
    assert client.get("/redoc").status_code == 404


@pytest.mark.parametrize("route", ["do", "sweep", "traverse", "sample", "apply", "retrieve"])
def test_every_route_is_described(client: TestClient, route: str) -> None:
    described = client.get("/openapi.json").json()["paths"]
    operation = described[f"/api/runs/{{run}}/{route}"]["post"]
    assert operation["description"]
    assert {"200", "404", "409", "422", "503"} <= operation["responses"].keys()

"""Actions that are pressed quickly, refused, or asked about, in a real browser."""

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

BARS = ".bar-row"
NOTICE = "document.getElementById('notice').textContent"


def own_picture(picture: np.ndarray) -> dict[str, Any]:
    """A PNG as a visitor chooses it."""
    content = io.BytesIO()
    Image.fromarray(picture).save(content, "PNG")
    return {"name": "own.png", "mimeType": "image/png", "buffer": content.getvalue()}


@pytest.fixture
def page(visit: Any, run_ids: dict[str, str]) -> Any:
    page = visit(f"#/transitions/{run_ids['shifts']}?image=t-2")
    page.wait_for_selector(".history li")
    return page


def press(page: Any) -> None:
    page.locator(".action").first.click()


def wait_for_steps(page: Any, count: int) -> None:
    page.wait_for_function("n => document.querySelectorAll('.history li').length === n", arg=count)


def test_the_last_action_is_asked_for_only_once_it_was_answered(page: Any, hold: Any) -> None:
    guess = page.get_by_role("button", name="Infer the last action")
    press(page)
    wait_for_steps(page, 2)
    press(page)
    wait_for_steps(page, 3)
    assert guess.is_enabled()
    release = hold(page, "**/apply", requests=2)
    page.get_by_role("button", name="Undo").click()
    assert guess.is_disabled()
    press(page)  # as many as were answered, but not the same
    assert guess.is_disabled()
    release()
    guess.click(trial=True)  # waits until it can be pressed


def test_what_was_asked_of_the_last_action_goes_with_it(page: Any, hold: Any) -> None:
    guess = page.get_by_role("button", name="Infer the last action")
    press(page)
    wait_for_steps(page, 2)
    guess.click()
    page.wait_for_selector(BARS)
    press(page)
    wait_for_steps(page, 3)
    assert page.locator(BARS).count() == 0
    release = hold(page, "**/retrieve")
    with page.expect_response("**/retrieve") as got:
        guess.click()
        page.wait_for_timeout(300)
        page.get_by_role("button", name="Undo").click()
        wait_for_steps(page, 2)
        release()
    assert got.value.ok
    page.wait_for_timeout(300)
    assert page.locator(BARS).count() == 0


def test_an_action_that_is_refused_is_taken_back(visit: Any, page: Any, hold: Any) -> None:
    visit.foreseen.append("status of 422")
    press(page)
    wait_for_steps(page, 2)
    release = hold(page, "**/apply")
    press(page)
    release(refuse="not now")
    page.wait_for_function(f"() => {NOTICE} === 'not now'")
    page.wait_for_function("() => location.hash.split('right').length === 2")
    assert page.get_by_role("button", name="Infer the last action").is_enabled()
    press(page)
    wait_for_steps(page, 3)
    release = hold(page, "**/apply")
    page.locator(".choose .strip label").nth(4).click()
    release(refuse="not here")
    wait_for_steps(page, 1)  # nothing is known of the other image but itself
    page.wait_for_function("() => location.hash.endsWith('image=t-4')")


def test_what_was_answered_is_drawn_though_the_next_is_refused(
    visit: Any, page: Any, hold: Any
) -> None:
    visit.foreseen.append("status of 422")
    page.evaluate(
        """() => {
          const { decode } = HTMLImageElement.prototype;
          const later = () => new Promise((resume) => setTimeout(resume, 400));
          HTMLImageElement.prototype.decode = function () { return later().then(() => decode.call(this)); };
        }"""
    )
    with page.expect_response("**/apply"):
        press(page)
    release = hold(page, "**/apply")
    press(page)
    release(refuse="not now")
    wait_for_steps(page, 2)
    page.wait_for_function("() => location.hash.split('right').length === 2")


def test_ones_own_picture_is_not_called_the_data(page: Any) -> None:
    page.get_by_text("from the data").wait_for()
    file = own_picture(np.full((32, 32, 3), 200, np.uint8))
    page.locator(".choose input[type=file]").set_input_files(files=[file])
    page.get_by_text("not in the data").wait_for()
    assert page.locator(".stage .image").nth(2).locator("img").count() == 0


def test_without_an_image_nothing_can_be_pressed(visit: Any, run_ids: dict[str, str]) -> None:
    page, shifts = visit("#/training"), run_ids["shifts"]
    missing = {"examples": 0, "unavailable": "photos: there is no such folder; check its name"}
    page.route(
        f"**/runs/{shifts}", lambda route: route.fulfill(json=route.fetch().json() | missing)
    )
    page.route("**/images?*", lambda route: route.fulfill(json=[]))
    page.goto(f"{page.url.partition('#')[0]}#/transitions/{shifts}?actions=%2Bright")
    page.wait_for_selector(".view.transitions")
    page.get_by_text("upload an image. photos: there is no such folder").first.wait_for()
    actions = page.locator(".action")
    assert [actions.nth(i).is_disabled() for i in range(actions.count())] == [True, True]
    for tool in ("Undo", "Reset"):
        assert page.get_by_role("button", name=tool).is_disabled()
    file = own_picture(np.full((32, 32, 3), 200, np.uint8))
    page.locator(".retrieval input[type=file]").first.set_input_files(files=[file])
    page.wait_for_selector(".retrieval [value^=u-]:checked", state="attached")
    assert page.evaluate(NOTICE) == ""  # one image alone sends no request
    page.locator(".choose input[type=file]").set_input_files(files=[file])
    wait_for_steps(page, 2)  # that of the address
    press(page)
    wait_for_steps(page, 3)

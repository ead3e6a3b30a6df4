"""Moving a cause in a real browser, and seeing its effects."""

import base64
import io
import json
from typing import Any

import numpy as np
from PIL import Image

LIGHT, SHADOW = "#slider-light_angle", "#slider-shadow_length"
MAIN, TRUTH = ".image.main img", ".image:nth-child(3) img"
MOVED = "#/intervene?image=t-3&do=light_angle:70"


def pixels(url: str) -> np.ndarray:
    content = base64.b64decode(url.partition(",")[2])
    return np.asarray(Image.open(io.BytesIO(content)), dtype=np.float64) / 255


def source(page: Any, selector: str = MAIN) -> str:
    return page.locator(selector).get_attribute("src")


def wait_for_other(page: Any, before: str, selector: str = MAIN) -> None:
    page.wait_for_function(
        "([where, src]) => document.querySelector(where).src !== src", arg=[selector, before]
    )


def settle(page: Any) -> None:
    """Wait until what is asked for is what is shown."""
    page.wait_for_selector(".stage[aria-busy=false]")


def test_dragging_a_slider_moves_the_picture_and_the_truth_agrees(visit: Any) -> None:
    page = visit("#/intervene?image=t-3")
    page.wait_for_selector(MAIN)
    before = source(page)
    page.evaluate(
        """() => {
          window.gaps = 0;
          const frame = document.querySelector(".image.main .frame");
          const look = () => { window.gaps += !frame.querySelector("img")?.complete; };
          new MutationObserver(look).observe(frame, { childList: true });
        }"""
    )
    box = page.locator(LIGHT).bounding_box()
    own = page.locator("[data-concept=light_angle] .inferred").bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(own["x"] + 1, middle)
    page.mouse.down()
    for share in (0.5, 0.4, 0.3, 0.2):
        page.mouse.move(box["x"] + share * box["width"], middle)
    page.mouse.up()
    wait_for_other(page, before)
    settle(page)

    assert page.evaluate("window.gaps") == 0, "the picture was gone for a moment"
    value = float(page.locator("[data-concept=light_angle] .entry input").input_value())
    assert 60 < value < 75
    picture, truth, original = (
        pixels(source(page, where)) for where in (MAIN, TRUTH, ".image:nth-child(1) img")
    )
    error, nothing = np.square(picture - truth).mean(), np.square(original - truth).mean()
    assert nothing > 0.005, "the light has moved"
    assert error < nothing / 4
    moved = page.locator(".slider.affected").evaluate_all("all => all.map(e => e.dataset.concept)")
    assert set(moved) == {"shadow_length", "shadow_position"}


def test_only_the_newest_value_is_asked_for(visit: Any) -> None:
    page = visit("#/intervene?image=t-3")
    page.wait_for_selector(MAIN)
    asked: list[dict[str, Any]] = []
    page.on("request", lambda r: r.url.endswith("/do") and asked.append(r.post_data_json))
    before = source(page)
    page.locator(LIGHT).evaluate(
        """slider => {
          for (let value = 60; value <= 120; value++) {
            slider.value = value;
            slider.dispatchEvent(new Event("input"));
          }
        }"""
    )
    wait_for_other(page, before)
    settle(page)
    assert len(asked) == 2
    assert asked[-1]["do"]["light_angle"] == 120


def test_setting_an_effect_cuts_it_from_its_causes(visit: Any) -> None:
    page = visit("#/intervene?image=t-3")
    page.locator(SHADOW).fill("8")
    page.wait_for_selector(".edge.removed")
    cut = page.locator(".edge.removed").evaluate_all("all => all.map(e => e.dataset.edge)")
    assert set(cut) == {"pendulum_angle>shadow_length", "light_angle>shadow_length"}
    assert page.locator(".node.set").get_attribute("data-node") == "shadow_length"
    assert page.locator(".node.affected").count() == 0
    assert "Removed by the intervention" in page.locator(".diagram").get_attribute("aria-label")
    page.locator(LIGHT).fill("70")
    page.wait_for_selector(".node.affected")
    assert page.locator(".node.affected").get_attribute("data-node") == "shadow_position"
    assert (
        page.locator(".edge.affected").get_attribute("data-edge") == "light_angle>shadow_position"
    )
    page.get_by_role("button", name="Reset").click()
    page.wait_for_function(
        "() => !document.querySelector('.edge.removed, .slider.set, .node.affected')"
    )


def test_ones_own_picture_is_taken_and_others_are_refused(visit: Any) -> None:
    visit.foreseen.append("status of 422")  # the browser tells of the refusal
    page = visit("#/intervene?image=t-3")
    page.wait_for_selector(MAIN)
    original = pixels(source(page, ".image:nth-child(1) img"))
    content = io.BytesIO()
    Image.fromarray((255 * original).astype(np.uint8)).resize((64, 64)).save(content, "PNG")
    chooser = page.locator(".picker input[type=file]")
    chooser.set_input_files(
        files=[{"name": "own.png", "mimeType": "image/png", "buffer": content.getvalue()}]
    )
    page.wait_for_selector(".thumbnail:first-child input[value^=u-]:checked", state="attached")
    before = source(page)
    page.locator(LIGHT).fill("60")
    wait_for_other(page, before)
    page.get_by_text("unknown for this image").wait_for()
    chooser.set_input_files(
        files=[{"name": "bad.png", "mimeType": "image/png", "buffer": b"not a picture"}]
    )
    page.wait_for_function("() => document.getElementById('notice').textContent.includes('PNG')")


def test_a_shared_address_shows_the_same(visit: Any) -> None:
    page = visit("#/intervene?image=t-5")
    page.locator(LIGHT).fill("80")
    page.locator(SHADOW).fill("9")
    page.wait_for_function("() => location.hash.includes('shadow_length:9')")
    settle(page)
    other = visit(page.url)
    other.wait_for_selector(".edge.removed")
    settle(other)
    assert source(other) == source(page)
    assert other.locator(LIGHT).input_value() == page.locator(LIGHT).input_value()
    checked = ".strip input:checked"
    assert other.locator(checked).input_value() == "t-5"
    page.reload()
    settle(page)
    assert source(page) == source(other)


def test_it_can_be_used_by_keyboard_alone(visit: Any) -> None:
    page = visit("#/intervene?image=t-0", reduced_motion="reduce")
    page.wait_for_selector(MAIN)

    def tab_to(what: str) -> None:
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate("what => document.activeElement.matches(what)", what):
                return
        raise AssertionError(f"Tab never reaches {what}")

    tab_to(".strip input")
    before = source(page)
    page.keyboard.press("ArrowRight")
    wait_for_other(page, before)
    assert page.locator(".strip input:checked").input_value() == "t-1"
    tab_to(LIGHT)
    ring = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(ring) != "none"
    before = source(page)
    page.keyboard.press("Home")
    wait_for_other(page, before)
    settle(page)
    spoken = "document.getElementById('announcer').textContent"
    page.wait_for_function(f"() => {spoken}.includes('Light angle')")
    assert "Affected: " in page.evaluate(spoken)
    assert page.locator(LIGHT).get_attribute("aria-valuetext").endswith(", set")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # the button that undoes the intervention
    page.wait_for_function("() => !document.querySelector('.slider.set')")
    assert page.evaluate("document.activeElement.id") == LIGHT[1:]


def test_pictures_stay_in_sight_on_a_phone(visit: Any) -> None:
    page = visit(MOVED, phone=True)
    settle(page)
    width = "document.documentElement.scrollWidth"
    assert page.evaluate(width) == 390
    page.evaluate("scrollTo(0, 500)")
    assert page.evaluate("scrollY") == 500
    assert 0 <= page.locator(".image.main").bounding_box()["y"] < 60
    assert page.locator(LIGHT).bounding_box()["height"] >= 32


def test_a_value_that_is_refused_is_taken_back(visit: Any) -> None:
    visit.foreseen.append("status of 422")  # the browser tells of the refusal
    page = visit(MOVED)
    settle(page)
    number = page.locator("[data-concept=light_angle] input[type=number]")
    number.fill("9999")
    page.wait_for_function(
        "() => document.getElementById('notice').textContent.includes('too far')"
    )
    number.press("Tab")
    page.wait_for_function("() => location.hash.includes('light_angle:70')")
    assert float(number.input_value()) == 70


def test_what_is_seen_can_be_taken_home(visit: Any) -> None:
    page = visit(MOVED)
    settle(page)
    with page.expect_download() as got:
        page.get_by_role("button", name="PNG").click()
    with Image.open(got.value.path()) as picture:
        assert picture.size == (32, 32)
    with page.expect_download() as got:
        page.get_by_role("button", name="JSON").click()
    with open(got.value.path()) as file:  # noqa: PTH123
        told = json.load(file)
    assert told["do"] == {"light_angle": 70}
    assert told["image"] == "t-3"
    assert told["error"]["model"] < told["error"]["unchanged"]


def test_a_film_strip_sets_what_is_clicked(visit: Any) -> None:
    page = visit("#/intervene?image=t-3&sweep=light_angle")
    page.wait_for_selector(".frames li")
    assert page.locator(".frames li").count() == 9
    assert page.locator(".frames img").count() == 18, "the truth is below each picture"
    page.locator(".frames button").first.click()
    page.wait_for_selector("[data-concept=light_angle].set")
    page.wait_for_function("() => location.hash.includes('light_angle:54')")

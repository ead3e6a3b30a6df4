"""Answers that are late, refused, or about what is no longer asked for."""

from typing import Any

import pytest

LIGHT, MAIN = "#slider-light_angle", ".image.main img"
NUMBER = "[data-concept=light_angle] input[type=number]"
MOVED = "#/intervene?image=t-3&do=light_angle:70"
NOTICE = "document.getElementById('notice').textContent"


def settle(page: Any) -> None:
    """Wait until what is asked for is what is shown."""
    page.wait_for_selector(".stage[aria-busy=false]")


def test_a_refusal_does_not_undo_the_move_that_came_after_it(visit: Any, hold: Any) -> None:
    visit.foreseen.append("status of 422")
    page = visit(MOVED)
    settle(page)
    release = hold(page, "**/do")
    page.locator(NUMBER).fill("9999")
    page.locator(NUMBER).fill("90")
    release()
    page.wait_for_function(f"() => {NOTICE}.includes('too far')")
    settle(page)
    page.wait_for_function("() => location.hash.includes('light_angle:90')")
    assert page.locator(MAIN).get_attribute("alt") == "Counterfactual with Light angle 90 degrees"
    assert page.locator(LIGHT).get_attribute("aria-valuetext").startswith("90")
    page.wait_for_function("() => document.getElementById('announcer').textContent.includes('90')")


def test_what_is_shown_is_called_by_its_own_value_while_another_waits(
    visit: Any, hold: Any
) -> None:
    page = visit(MOVED)
    settle(page)
    first = hold(page, "**/do")
    page.locator(NUMBER).fill("80")
    page.locator(NUMBER).fill("90")
    second = hold(page, "**/do")
    first()
    page.wait_for_function(
        "where => document.querySelector(where).alt.includes('Light angle 80')", arg=MAIN
    )
    assert page.locator(LIGHT).get_attribute("aria-valuetext").startswith("90")
    second()
    settle(page)
    assert "Light angle 90" in page.locator(MAIN).get_attribute("alt")


def test_a_refusal_about_the_image_before_leaves_the_next_as_it_is(visit: Any, hold: Any) -> None:
    visit.foreseen.append("status of 422")
    page = visit(MOVED)
    settle(page)
    release = hold(page, "**/do")
    page.locator(NUMBER).fill("90")
    page.locator(".strip label").nth(4).click()
    page.wait_for_function("() => location.hash.includes('t-4')")
    release(refuse="not this one")
    page.wait_for_function(f"() => {NOTICE} === 'not this one'")
    settle(page)
    assert "light_angle:90" in page.url
    assert page.locator(".slider.set").count() == 1
    assert "Light angle 90" in page.locator(MAIN).get_attribute("alt")


def compared(page: Any) -> None:
    page.wait_for_function(
        """() => {
          const notes = [...document.querySelectorAll(".image.main .note")];
          return notes.length === 2 && notes.every((note) => note.textContent.startsWith("error"));
        }"""
    )


def sources(page: Any) -> list[str]:
    return page.locator(MAIN).evaluate_all("all => all.map(image => image.src)")


def test_compared_runs_go_back_together_when_one_refuses(
    visit: Any, hold: Any, run_ids: Any
) -> None:
    visit.foreseen.append("status of 422")
    page = visit("#/compare?image=t-3&do=light_angle:70")
    compared(page)
    before, poor = sources(page), run_ids["poor"]
    release = hold(page, f"**/{poor}/do")
    page.locator(NUMBER).fill("90")
    page.wait_for_function(
        "([where, src]) => document.querySelector(where).src !== src", arg=[MAIN, before[0]]
    )
    release(refuse="not this one")
    page.wait_for_function(f"() => {NOTICE} === 'poor: not this one'")
    page.wait_for_function(
        "([where, src]) => document.querySelector(where).src === src", arg=[MAIN, before[0]]
    )
    page.wait_for_function("() => location.hash.includes('light_angle:70')")
    assert sources(page) == before
    page.locator(NUMBER).press("Tab")
    assert float(page.locator(NUMBER).input_value()) == 70


def test_a_link_that_both_runs_refuse_shows_the_image_as_it_is(visit: Any) -> None:
    visit.foreseen.append("status of 422")
    page = visit("#/compare?image=t-3&do=light_angle:9999")
    compared(page)
    page.wait_for_function("() => !location.hash.includes('do=')")
    assert page.locator(".side .images .image:first-child img").count() == 1
    assert page.locator(".slider.set").count() == 0


def test_the_address_that_is_left_is_written_no_more(visit: Any, hold: Any) -> None:
    page = visit(MOVED)
    settle(page)
    release = hold(page, "**/api/runs")
    page.locator(LIGHT).evaluate(
        """slider => {
          slider.value = 90;
          slider.dispatchEvent(new Event("input"));
          location.hash = "#/scores";
        }"""
    )
    page.wait_for_timeout(500)
    assert page.evaluate("location.hash") == "#/scores"
    release()
    page.wait_for_selector(".view.scores")


def test_a_refused_code_does_not_undo_the_move_that_came_after_it(
    visit: Any, hold: Any, run_ids: Any
) -> None:
    visit.foreseen.append("status of 422")
    page = visit(f"#/traverse/{run_ids['plain']}?image=t-1")
    number = page.locator("[data-concept='0'] input[type=number]")
    number.wait_for()
    release = hold(page, "**/traverse")
    number.fill("1e9")
    number.fill("1.5")
    release()
    page.wait_for_function(f"() => {NOTICE}.includes('too far')")
    page.wait_for_function("() => location.hash.endsWith('latents=0:1.5')")
    page.wait_for_selector("#slider-0[aria-valuetext^='1.5'][aria-valuetext$=', set']")


@pytest.mark.parametrize("status", [0, 500])
def test_a_code_that_fails_is_taken_back(visit: Any, hold: Any, run_ids: Any, status: int) -> None:
    visit.foreseen.extend(["status of 500", "ERR_FAILED"])
    page = visit(f"#/traverse/{run_ids['plain']}?image=t-1&latents=0:1.5")
    number = page.locator("[data-concept='0'] input[type=number]")
    page.wait_for_selector("#slider-0[aria-valuetext^='1.5']")
    release = hold(page, "**/traverse")
    number.fill("2")
    page.wait_for_function("() => location.hash.endsWith('latents=0:2')")
    release(refuse="not now", status=status)
    page.wait_for_function("() => location.hash.endsWith('latents=0:1.5')")
    page.wait_for_selector("#slider-0[aria-valuetext^='1.5'][aria-valuetext$=', set']")


@pytest.mark.parametrize("status", [0, 500])
def test_compared_runs_go_back_together_when_one_fails(visit: Any, hold: Any, status: int) -> None:
    visit.foreseen.extend(["status of 500", "ERR_FAILED"])
    page = visit("#/compare?image=t-3&do=light_angle:70")
    compared(page)
    before = sources(page)
    release = hold(page, "**/do", requests=2)
    page.locator(NUMBER).fill("90")
    page.wait_for_function("() => location.hash.includes('light_angle:90')")
    release(refuse="not now", status=status)
    page.wait_for_function("() => location.hash.includes('light_angle:70')")
    page.wait_for_selector(f"{LIGHT}[aria-valuetext^='70']")
    assert sources(page) == before


def test_a_film_strip_is_never_of_what_was_refused(visit: Any) -> None:
    visit.foreseen.append("status of 422")
    page = visit(f"{MOVED}&sweep=pendulum_angle")
    settle(page)
    page.locator(NUMBER).fill("9999")
    page.wait_for_function(f"() => {NOTICE}.includes('too far')")
    settle(page)

    def of_another_concept(answer: Any) -> bool:
        return (
            "/sweep" in answer.url and answer.request.post_data_json["concept"] != "pendulum_angle"
        )

    with page.expect_response(of_another_concept) as got:
        page.locator("#sweep").select_option("shadow_length")
    assert got.value.ok
    assert got.value.request.post_data_json["do"] == {"light_angle": 70}


def test_a_run_is_described_anew_whenever_it_is_looked_at(visit: Any, run_ids: Any) -> None:
    page, plain = visit(f"#/traverse/{run_ids['plain']}"), run_ids["plain"]
    renewed = {"recipe": "trained: anew"}
    page.route(f"**/runs/{plain}", lambda route: route.fulfill(json=route.fetch().json() | renewed))
    page.goto(f"{page.url.partition('#')[0]}#/training/{plain}")
    page.wait_for_selector(".view.training")
    assert page.locator("details pre").text_content() == "trained: anew"

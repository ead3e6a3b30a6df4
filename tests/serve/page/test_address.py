"""Links: what is in an address comes back whole, and what no longer fits is left out."""

from typing import Any

import pytest

NOTICE = "document.getElementById('notice').textContent"
THERE_AND_BACK = """async ([name, value]) => {
  const { format, read } = await import("./address.js");
  return read(format({ view: "intervene", run: "r", film: name, do: { [name]: value } }));
}"""


@pytest.mark.parametrize(
    "name",
    ["light_angle", "hue, left", "a:b", "50%", "été", "😀 & \N{GOTHIC LETTER AHSA}", "+x=1?#"],
)
def test_any_name_comes_back_from_an_address(visit: Any, name: str) -> None:
    page = visit("#/training")
    found = page.evaluate(THERE_AND_BACK, [name, 2.5])
    assert found == {"view": "intervene", "run": "r", "film": name, "do": {name: 2.5}}


def test_lists_of_any_names_come_back(visit: Any) -> None:
    page = visit("#/training")
    names = ["+right", "-hue, left", "+50%", "+%2C", "+😀", "+a b"]
    found = page.evaluate(
        """async (names) => {
          const { format, encodeList, decodeList, read } = await import("./address.js");
          return decodeList(read(format({ view: "v", run: "r", actions: encodeList(names) })).actions);
        }""",
        names,
    )
    assert found == names
    assert (
        page.evaluate("import('./address.js').then(({ decodeList }) => decodeList(undefined))")
        == []
    )


def test_codes_that_a_model_no_longer_has_are_left_out(visit: Any, run_ids: dict[str, str]) -> None:
    page = visit(f"#/traverse/{run_ids['plain']}?image=t-1&latents=99:1,0:0.5,01:2,length:1,x:3")
    page.wait_for_selector(".view.traverse .slider.set")
    page.wait_for_function("() => location.hash.endsWith('latents=0:0.5')")
    assert page.locator(".slider.set").count() == 1
    assert page.evaluate(NOTICE) == ""


def test_codes_that_are_refused_are_taken_back(visit: Any, run_ids: dict[str, str]) -> None:
    visit.foreseen.append("status of 422")  # the browser tells of the refusal
    page = visit(f"#/traverse/{run_ids['plain']}?image=t-1&latents=0:1e9")
    page.wait_for_selector(".view.traverse .slider")
    page.wait_for_function(f"() => {NOTICE}.includes('too far')")
    page.wait_for_function("() => !location.hash.includes('latents')")
    assert page.locator(".slider.set").count() == 0
    page.locator("#slider-1").press("End")
    page.wait_for_function("() => location.hash.includes('latents=1:')")
    kept = page.locator("#slider-1").input_value()
    page.locator("[data-concept='0'] input[type=number]").fill("1e9")
    page.wait_for_function("() => !/[=,]0:/.test(location.hash) && location.hash.includes('1:')")
    assert page.locator("#slider-1").input_value() == kept


def test_actions_with_a_comma_come_back_whole(visit: Any, run_ids: dict[str, str]) -> None:
    page, shifts = visit("#/training"), run_ids["shifts"]
    named = {"+right": "+right, far", "-right": "-right, far"}

    def described(route: Any) -> None:
        known = route.fetch().json()
        route.fulfill(json=known | {"actions": [{"id": x, "label": x} for x in named.values()]})

    def applied(route: Any) -> None:
        body = route.request.post_data_json
        own = {theirs: ours for ours, theirs in named.items()}
        asked = {**body, "actions": [own[name] for name in body["actions"]]}
        route.fulfill(response=route.fetch(post_data=asked))

    page.route(f"**/runs/{shifts}", described)
    page.route("**/apply", applied)
    page.goto(f"{page.url.partition('#')[0]}#/transitions/{shifts}?image=t-2")
    page.wait_for_selector(".view.transitions")
    for pressed in (2, 3):
        page.get_by_role("button", name="+right, far", exact=False).first.click()
        page.wait_for_function(
            "n => document.querySelectorAll('.history li').length === n", arg=pressed
        )
    page.wait_for_function("() => location.hash.split('right').length === 3")
    page.reload()
    page.wait_for_function("() => document.querySelectorAll('.history li').length === 3")

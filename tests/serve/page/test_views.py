"""The other views, and the frame around them, in a real browser."""

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from disentwine.core.score import Score
from disentwine.metrics.registry import METRICS
from disentwine.runs.run import keep_scores, load_run

NOTICE = "document.getElementById('notice').textContent"
VIEWS = ("intervene", "traverse", "graph", "scores", "compare", "training")


def tabs(page: Any) -> list[str]:
    return [name.lower() for name in page.locator("#tabs a").all_text_contents()]


def run_ids(page: Any) -> dict[str, str]:
    return page.evaluate(
        "fetch('api/runs').then(a => a.json())"
        ".then(runs => Object.fromEntries(runs.map(run => [run.name, run.id])))"
    )


@pytest.mark.parametrize(("scheme", "phone"), [("light", False), ("dark", True)])
def test_every_view_opens_named_and_in_its_width(visit: Any, scheme: str, phone: bool) -> None:
    page = visit(phone=phone, color_scheme=scheme)
    assert tuple(tabs(page)) == VIEWS
    for view in VIEWS:
        page.locator("#tabs a", has_text=view.capitalize()).click()
        page.wait_for_selector(f".view.{view}")
        page.wait_for_load_state("networkidle")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view
        nameless = page.evaluate(
            """() => [...document.querySelectorAll("button, select, input, [role=img]")]
              .filter(e => !e.hidden && !e.ariaLabel && !e.labels?.length
                && (e.tagName === "SELECT" || !e.textContent.trim()))
              .map(e => e.outerHTML)"""
        )
        assert not nameless
        assert page.evaluate("[...document.images].every(i => i.hasAttribute('alt'))")
        assert page.locator("[aria-current=page]").count() == 1
        assert page.title().lower().startswith(view)


def test_the_theme_is_chosen_and_kept(visit: Any) -> None:
    page = visit("#/scores", color_scheme="light")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.locator("#theme").click()
    dark = page.evaluate(ground)
    assert dark != light
    page.reload()
    page.wait_for_selector(".view")
    assert page.evaluate(ground) == dark
    page.locator("#theme").click()
    assert page.evaluate(ground) == light


def test_codes_are_traversed_and_new_pictures_drawn(visit: Any) -> None:
    page = visit()
    ids = run_ids(page)
    page.locator("#runs").select_option(ids["plain"])
    page.wait_for_selector(".view.traverse .slider")
    assert tabs(page) == ["traverse", "graph", "scores", "training"]
    # A decoder that has hardly learnt paints nearly the same, so what was asked is looked at too.
    with page.expect_response(
        lambda r: r.url.endswith("/traverse") and "0" in r.request.post_data_json["latents"]
    ) as got:
        page.locator("#slider-0").press("End")
    page.wait_for_function(
        "src => document.querySelector('.image.main img').src === src",
        arg=got.value.json()["image"],
    )
    page.wait_for_function("() => location.hash.includes('latents=0:')")
    assert page.locator(".samples img").count() == 16


def test_codes_of_a_hierarchy_stand_by_layer_and_the_rest_can_be_asked_for(visit: Any) -> None:
    page = visit()
    plain = run_ids(page)["plain"]

    def layered(route: Any) -> None:
        layers = [
            {"name": "layer 2", "latents": [9, 8], "first": 1},
            {"name": "layer 1", "latents": [3, *range(3), *range(4, 8)], "first": 2},
        ]
        names = [f"layer {1 + (i > 7)}, z{i}" for i in range(10)]
        known = route.fetch().json()
        route.fulfill(json=known | {"latent_layers": layers, "latent_names": names})

    page.route(f"**/runs/{plain}", layered)
    page.locator("#runs").select_option(plain)
    page.wait_for_selector(".view.traverse .slider")
    headings = page.locator(".view.traverse legend")
    labels = page.locator(".view.traverse .slider label")
    assert headings.all_text_contents() == ["Layer 2, 1 of 2", "Layer 1, 2 of 8"]
    assert labels.all_text_contents() == ["Z9", "Z3", "Z0"]
    page.get_by_role("button", name="Show all 10").click()
    assert headings.all_text_contents() == ["Layer 2", "Layer 1"]
    assert labels.all_text_contents()[:3] == ["Z9", "Z8", "Z3"]
    assert labels.count() == 10
    page.locator("#slider-8").press("End")
    page.wait_for_function("() => location.hash.includes('latents=8:')")


def test_actions_are_pressed_and_retrieved(visit: Any) -> None:
    page = visit()
    shifts = run_ids(page)["shifts"]
    page = visit(f"#/transitions/{shifts}?image=t-2")
    for pressed in (2, 3):
        page.get_by_role("button", name="+ Right", exact=False).first.click()
        page.wait_for_function(
            "n => document.querySelectorAll('.history li').length === n", arg=pressed
        )
    page.get_by_role("button", name="Infer the last action").click()
    page.wait_for_selector(".bar-row")
    best = page.locator(".bar-row").first
    assert "ight" in best.text_content()
    assert best.text_content().startswith("+")
    assert float(best.locator(".number").text_content().rstrip("%")) > 90
    page.get_by_role("button", name="Undo").click()
    page.wait_for_function("() => document.querySelectorAll('.history li').length === 2")
    page.wait_for_function("() => location.hash.split('right').length === 2")
    strips = page.locator(".retrieval .strip")
    strips.nth(0).locator("label").nth(4).click()
    strips.nth(1).locator("label").nth(4).click()
    page.wait_for_function(
        "() => parseInt(document.querySelector('.bar-row .number')?.textContent) <= 60"
    )  # the same picture twice tells nothing


def test_two_pictures_of_ones_own_tell_their_action(visit: Any) -> None:
    page = visit()
    page = visit(f"#/transitions/{run_ids(page)['shifts']}")
    page.wait_for_selector(".retrieval .thumbnail")
    assert page.locator(".bar-row").count() == 0  # nothing was asked yet
    scene = np.zeros((32, 32, 3), np.uint8)
    scene[8:20, 8:14] = 255
    for place, pixels in enumerate((scene, np.roll(scene, -4, axis=1))):
        content = io.BytesIO()
        Image.fromarray(pixels).save(content, "PNG")
        file = {"name": "own.png", "mimeType": "image/png", "buffer": content.getvalue()}
        page.locator(".retrieval input[type=file]").nth(place).set_input_files(files=[file])
        page.wait_for_function(
            "i => document.querySelectorAll('.retrieval .strip')[i].querySelector('[value^=u-]:checked')",
            arg=place,
        )
    page.wait_for_function(
        "() => /^.?[-\u2212]/.test(document.querySelector('.bar-row')?.textContent ?? '')"
        " && parseInt(document.querySelector('.bar-row .number').textContent) > 90"
    )


def test_the_graph_is_judged_edge_by_edge(visit: Any) -> None:
    page = visit("#/graph")
    rows = page.locator(".graph tbody tr").all_text_contents()
    assert len(rows) == 4
    assert all(row.endswith("yes") for row in rows)
    assert any(row.startswith("Light angle \u2192 Shadow position") for row in rows)
    assert page.locator(".graph .diagram").count() == 2  # learnt and true


def test_scores_stand_beside_their_floors(visit: Any, page_runs: Any) -> None:
    scores = [
        Score("mig", 0.5, n=10, noise_floor=0.02),
        Score("counterfactual-ratio:light_angle", 1.25, n=7),
    ]
    keep_scores(load_run(page_runs[0]), scores)
    page = visit("#/scores")
    mig, ratio = page.locator(".scores tbody tr").all()
    assert mig.locator("td").nth(0).text_content() == "0.5"
    assert mig.locator("td").nth(1).text_content() == "0.02"
    assert METRICS["mig"].about in mig.text_content()
    assert (mig.locator(".meter").count(), ratio.locator(".meter").count()) == (1, 0)
    assert "light angle" in ratio.text_content()


def test_two_runs_are_compared_under_one_intervention(visit: Any) -> None:
    page = visit("#/compare?image=t-3&do=light_angle:70")
    page.wait_for_function(
        """() => {
          const notes = [...document.querySelectorAll(".image.main .note")];
          return notes.length === 2 && notes.every((note) => note.textContent.startsWith("error"));
        }"""
    )
    good, poor = (
        float(text.removeprefix("error ").replace("\N{MINUS SIGN}", "-"))
        for text in page.locator(".image.main .note").all_text_contents()
    )
    assert good < poor / 4


def test_losses_grow_while_a_run_trains(visit: Any) -> None:
    page = visit("#/scores")
    told = [0]

    def answer(route: Any) -> None:
        told[0] += 1
        rows = [{"kind": "train", "step": 10 * i, "loss": 1 / (i + 1)} for i in range(5 * told[0])]
        route.fulfill(
            json={"finished": told[0] > 1, "step": 50, "steps": 100, "running": True, "rows": rows}
        )

    page.route("**/training?*", answer)
    page.get_by_role("link", name="Training").click()
    page.locator("#main").get_by_text("training now").wait_for()
    first = page.locator(".chart path.train").get_attribute("d")
    page.locator("#main").get_by_text("Finished").wait_for()
    assert page.locator(".chart path.train").get_attribute("d").count("L") > first.count("L")


def test_axes_hold_every_validation_but_that_before_the_first_step(visit: Any) -> None:
    page = visit("#/scores")
    losses = {0: 500.0, 10: 90.0, 500: 50.0, 1000: 40.0}
    rows = [{"kind": "validation", "step": step, "loss": loss} for step, loss in losses.items()]
    rows += [{"kind": "train", "step": step, "loss": 30.0} for step in range(100, 1001, 100)]
    told = {"finished": True, "step": 1000, "steps": 1000, "running": False, "rows": rows}
    page.route("**/training?*", lambda route: route.fulfill(json=told))
    page.get_by_role("link", name="Training").click()
    page.locator("#main").get_by_text("Finished").wait_for()
    heights = page.evaluate(
        """() => {
          const held = document.querySelector(".chart clipPath rect");
          const [top, height] = ["y", "height"].map((name) => Number(held.getAttribute(name)));
          return [...document.querySelectorAll(".chart circle.validation")]
            .map((circle) => (Number(circle.getAttribute("cy")) - top) / height);
        }"""
    )
    assert len(heights) == 3
    assert heights == sorted(heights)
    assert 0 < heights[0] < 0.1
    assert heights[-1] < 1


def test_a_busy_server_is_asked_again_and_a_lost_one_is_told(visit: Any) -> None:
    visit.foreseen += ["status of 503", "net::ERR_FAILED"]  # the browser tells of both
    page = visit("#/intervene?image=t-3")
    page.wait_for_selector(".image.main img")
    refused: list[str] = []

    def busy(route: Any) -> None:
        refused.append(route.request.url)
        route.fulfill(status=503, headers={"Retry-After": "0.1"}, json={"detail": "too many"})

    page.route("**/do", busy, times=1)
    page.locator("#slider-light_angle").fill("70")
    page.wait_for_selector(".node.affected")
    assert len(refused) == 1
    page.route("**/do", lambda route: route.abort())
    page.locator("#slider-light_angle").fill("90")
    page.wait_for_function(f"() => {NOTICE}.includes('does not answer')")


def test_a_link_to_a_run_that_is_not_here_says_so(visit: Any) -> None:
    page = visit("#/intervene/nowhere?image=t-1")
    page.wait_for_function(f"() => {NOTICE}.includes('not served here')")


def test_codes_out_of_a_codebook_move_by_whole_numbers(visit: Any) -> None:
    page = visit()
    page = visit(f"#/traverse/{run_ids(page)['quantized']}?image=t-1&latents=0:2.6,1:50")
    page.wait_for_selector(".view.traverse .slider.set")
    page.wait_for_function("() => location.hash.endsWith('latents=0:3,1:7')")
    slider = page.locator("#slider-0")
    assert [slider.get_attribute(name) for name in ("min", "max", "step")] == ["0", "7", "1"]
    assert slider.input_value() == "3"
    assert page.locator("[data-concept='0'] input[type=number]").input_value() == "3"


def test_why_a_run_cannot_be_opened_is_told(visit: Any) -> None:
    visit.foreseen.append("status of 404")  # the browser tells of the refusal
    page = visit("#/training")
    plain, why = run_ids(page)["plain"], "plain: its folder is gone"
    page.route(
        f"**/runs/{plain}", lambda route: route.fulfill(status=404, json={"detail": why}), times=1
    )
    page.locator("#runs").select_option(plain)
    page.wait_for_function("() => document.title.includes('plain')")
    page.get_by_text(why).wait_for()
    assert tabs(page) == ["training"]
    page.evaluate("location.hash += '?again'")  # it may be back meanwhile
    page.wait_for_function("() => document.querySelectorAll('#tabs a').length > 1")

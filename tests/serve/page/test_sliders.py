"""Sliders of names that are alike, and categories as they are written; pictures that are made smaller."""

import base64
import io
from typing import Any

import numpy as np
from PIL import Image

MANY = """async (names) => {
  const { sliders } = await import("./sliders.js");
  const concepts = names.map((name) => ({ name, low: 0, high: 1 }));
  const { element } = sliders(concepts, { onset() {}, legend: "Concepts" });
  document.body.append(element);
  const named = (label) => label.control.closest(".slider").dataset.concept;
  return [...element.querySelectorAll("label")].map(named);
}"""
WRITTEN = """async (value) => {
  const { scaleOf, sliders, formatValue } = await import("./sliders.js");
  const values = ["red", "green", "blue"];
  const hue = { name: "hue", kind: "categorical", low: 0, high: 2, step: 1, values };
  const { element, update } = sliders([hue], { onset() {}, legend: "Concepts" });
  update({ before: { hue: value } });
  const select = element.querySelector("select");
  return [formatValue(hue, value), values[select.value], value === null || scaleOf(hue).say(value)];
}"""


def test_every_name_has_a_slider_of_its_own(visit: Any) -> None:
    page = visit("#/training")
    names = ["A+", "A-", "hue", "h\u00f6he", "\u9ad8\u3055", "\u5e83\u3055", "a b", "a-b"]
    assert page.evaluate(MANY, names) == names


def test_what_a_model_reads_is_written_as_the_nearest_category(visit: Any) -> None:
    page = visit("#/training")
    for value, name in ((-1.4, "red"), (0.6, "green"), (3.7, "blue")):
        assert page.evaluate(WRITTEN, value) == [name] * 3
    assert page.evaluate(WRITTEN, None)[0] == "\u2013"


def test_a_large_transparent_picture_lies_on_white(visit: Any) -> None:
    page = visit("#/intervene?image=t-3")
    page.wait_for_selector(".image.main img")
    noise = np.random.default_rng(0).integers(0, 256, (1100, 1100, 4), np.uint8)
    noise[:, :550, 3] = 0
    content = io.BytesIO()
    Image.fromarray(noise).save(content, "PNG")
    assert content.tell() > 3.5e6
    file = {"name": "own.png", "mimeType": "image/png", "buffer": content.getvalue()}
    with page.expect_request("**/uploads?*") as sent:
        page.locator(".picker input[type=file]").set_input_files(files=[file])
    assert sent.value.headers["content-type"] == "image/jpeg"
    page.wait_for_selector(".thumbnail:first-child input[value^=u-]:checked", state="attached")
    url = page.locator(".thumbnail img").first.get_attribute("src")
    shown = np.asarray(Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))))
    assert shown[:, :14].min() > 240

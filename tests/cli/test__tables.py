"""Tables show names as they are, whatever is in them."""

import pytest

from disentwine.cli._tables import print_scores, print_skipped, print_table
from disentwine.core.score import Score

NAMES = ["height [cm]", "a[/b]", "[red]x", ":smile: y", r"b\[c]"]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_no_markup(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_table(
        f"of {name}", (name, f">{name}"), [(f"1 {name}", f"2 {name}")], caption=f"so {name}"
    )
    shown = capsys.readouterr().out
    for place in ("of", "1", "2", "so"):
        assert f"{place} {name}" in shown
    assert shown.count(name) == 6


def test_scores_that_do_not_apply_for_one_reason_are_told_at_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_skipped({"sap": "no factors", "mic": "few images", "mig": "no factors"})
    assert capsys.readouterr().out.splitlines() == [
        "sap, mig do not apply: no factors",
        "mic does not apply: few images",
    ]


@pytest.mark.parametrize(("seeds", "told"), [(3, True), (1, False)])
def test_means_over_seeds_are_called_so(
    seeds: int, told: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    scores = [Score("z-diff", 0.5, n=200, details={"seeds": seeds}), Score("sap", 0.1, n=200)]
    print_scores(scores, title="scores")
    assert ("means over 3 seeds" in capsys.readouterr().out) == told

"""Tables show names as they are, whatever is in them."""

import pytest

from disentwine.cli.tables import print_table

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

"""Summary of the CT-VAE study."""

from __future__ import annotations

from collections.abc import Sequence

from disentwine.studies.summary import Row, Summary, below_published, best_row, quote, row_name

SYSTEM = "ct-vae"


def summary(rows: Sequence[Row]) -> Summary:
    """Action accuracy and error after an action of the best CT-VAE row on every data set."""
    own = [row for row in rows if row["system"] == SYSTEM]
    data_sets = dict.fromkeys(row["data"] for row in own if row["seeds"])
    found, low = [], []
    for data in data_sets:
        best = best_row(own, "action-accuracy", data=data)
        if best:
            accuracy = quote([best], SYSTEM, "action-accuracy", ".1%", data=data, note=best["note"])
            share = quote(own, SYSTEM, "intervention-share", ".1%", data=data, note=best["note"])
            found.append(f"{data}: {row_name(best)} {accuracy}, {share}")
        below = below_published(own, "action-accuracy", ".1%", data=data)
        if below != "none":
            low.append(f"{data}: {below}")
    return Summary(
        "CT-VAE by the accuracy of inferred actions and by the error of images after an action, "
        "against the real images (Table 1 of the paper).",
        f"Action accuracy, and MSE relative to no action, of the best row: {'; '.join(found)}.",
        f"Action accuracy below the published number: {'; '.join(low) or 'none'}.",
    )

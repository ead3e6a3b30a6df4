"""Functions from arrays to matplotlib figures."""

from disentwine.figures.adjacency import adjacency_over_training
from disentwine.figures.animation import animated_traversals
from disentwine.figures.comparison import Curve, trade_off, traversal_grid
from disentwine.figures.curves import ScoreCurve, latent_activity, loss_curves, score_curves
from disentwine.figures.graphs import graph_figure
from disentwine.figures.heat_maps import effect_matrix_figure, score_matrix
from disentwine.figures.hierarchy import activity_over_training, layer_activity, layer_maps
from disentwine.figures.images import image_grid, image_pairs, labelled_rows, traversals
from disentwine.figures.style import save_figure, to_png_bytes

__all__ = [
    "Curve",
    "ScoreCurve",
    "activity_over_training",
    "adjacency_over_training",
    "animated_traversals",
    "effect_matrix_figure",
    "graph_figure",
    "image_grid",
    "image_pairs",
    "labelled_rows",
    "latent_activity",
    "layer_activity",
    "layer_maps",
    "loss_curves",
    "save_figure",
    "score_curves",
    "score_matrix",
    "to_png_bytes",
    "trade_off",
    "traversal_grid",
    "traversals",
]

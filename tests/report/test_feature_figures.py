import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg

from labelproof.experiments.embeddings import Embedding
from labelproof.losses import format_loss, parse_loss
from labelproof.report.feature_figures import draw_embeddings
from labelproof.report.loss_labels import loss_labels

LONG = (
    "taylor@8d3f8d(order=3,gamma=0.5)"
    "+sr(tau=0.5,p=0.01,lambda0=4,rho=1.02,r=1,normalize=true,clamp=1e-7)"
)


def test_rows_of_long_losses_are_folded_beside_their_panels_and_inside_the_picture() -> None:
    points = np.random.default_rng(0).random((30, 2))
    methods = ["CE", LONG, LONG.replace("order=3", "order=4")]
    figure = draw_embeddings(
        [Embedding(method, "none", 98.5, points, np.arange(30) % 10) for method in methods],
        title="Features",
        class_names=[str(number) for number in range(10)],
    )
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    extents = [axes.yaxis.label.get_window_extent(renderer) for axes in figure.axes]
    for axes, extent in zip(figure.axes, extents, strict=True):
        panel = axes.get_window_extent(renderer)
        assert panel.y0 <= extent.y0 < extent.y1 <= panel.y1
        assert 0 <= extent.x0 < extent.x1 < panel.x0
    assert figure.axes[0].get_ylabel() == "CE"
    assert figure.axes[1].get_ylabel().startswith("taylor(order=3,\n")


def test_a_loss_is_called_as_it_would_be_written() -> None:
    for text in ("gce(q=0.5)+sr", "10*nce+mae+sr(p=0.01)", "ce", "normalized(gce(q=0.5))", "sce"):
        written = format_loss(parse_loss(text))
        (label,) = loss_labels([written])
        assert len(label) <= len(text)
        assert format_loss(parse_loss(label)) == written
    assert loss_labels(["Co-teaching", "CE+SR(tau=1)"]) == ["Co-teaching", "CE+SR(tau=1)"]


def test_losses_of_ones_own_that_differ_in_their_code_alone_keep_its_digits() -> None:
    both = ["mine@0a1b2c(a=1)", "mine@3f9c21(a=1)", "mine@3f9c21(a=2)"]
    assert loss_labels(both) == ["mine@0a1b2c(a=1)", "mine@3f9c21(a=1)", "mine(a=2)"]

"""What the gallery needs: an order, a look, and eyes for figures that pyplot does not know."""

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst
from threadpoolctl import threadpool_limits

# From coding to learning to kernels to classes; a new example that is not named here comes last.
ORDER = (
    "plot_omp_vs_ols",
    "plot_lasso_path",
    "plot_atoms_ksvd",
    "plot_denoising",
    "plot_sizes",
    "plot_online_mod",
    "plot_kernel_omp",
    "plot_kernel_dictionaries",
    "plot_nystrom_samplers",
    "plot_preimages",
    "plot_contact_sheet",
    "plot_kscdl",
    "plot_directions",
    "plot_lkdl_digits",
    "plot_grid_search",
    "plot_calibration",
    "plot_supervised",
    "plot_channels",
    "plot_occlusion",
)

STYLE = {
    # Okabe and Ito's colours, which all colour visions tell apart.
    "axes.prop_cycle": mpl.cycler(
        color=["#0072B2", "#D55E00", "#009E73", "#AA4499", "#E69F00", "#56B4E9"]
    ),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "figure.dpi": 100,
    "legend.frameon": False,
    "lines.markersize": 5,
}


class Order:
    """Sort key of the examples."""

    def __init__(self, src_dir):
        self.src_dir = src_dir

    def __call__(self, filename):
        """Return the place of a file."""
        name = Path(filename).stem
        return (ORDER.index(name) if name in ORDER else len(ORDER), name)


def reset(gallery_conf, fname):
    """Give every example the same start."""
    mpl.rcParams.update(STYLE)
    # Small matrices and a machine that may be busy: helper threads of BLAS would only spin.
    threadpool_limits(limits=1, user_api="blas")


def scrape_figures(block, block_vars, gallery_conf, **kwargs):
    """Save new figures of ``kernelatoms.report``, which stay clear of pyplot's global state.

    Runs before the scraper for pyplot, which closes its figures and leaves them without manager.
    """
    paths, sources = [], []
    for value in block_vars["example_globals"].values():
        if not isinstance(value, Figure) or getattr(value, "in_gallery", False):
            continue
        value.in_gallery = True
        if value.canvas.manager is not None:
            continue
        path = Path(next(block_vars["image_path_iterator"]))
        sharp = path.with_name(f"{path.stem}_2_00x{path.suffix}")
        value.savefig(path, dpi=100)
        value.savefig(sharp, dpi=200)
        paths.append(str(path))
        sources.append({0: str(path), 2.0: str(sharp)})
    return figure_rst(paths, gallery_conf["src_dir"], srcsetpaths=sources)

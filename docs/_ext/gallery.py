"""What the gallery needs: themes, thumbnails, a look, and eyes for figures unknown to pyplot."""

from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from PIL import Image
from sphinx_gallery.scrapers import figure_rst, matplotlib_scraper
from threadpoolctl import threadpool_limits

# What belongs together, in the order of the page. A thumbnail is a part of one figure: its number,
# and where the part begins and ends, from left and from top; all of the first figure if nothing is
# said. A new example that is not named here comes last, under "More".
WHOLE = (1, (0.0, 0.0, 1.0, 1.0))
THEMES = {
    "Learning dictionaries": {
        "plot_atoms_ksvd": (2, (0.0, 0.0, 0.5, 0.56)),
        "plot_denoising": (1, (0.335, 0.0, 1.0, 1.0)),
        "plot_sizes": WHOLE,
        "plot_online_mod": WHOLE,
    },
    "Coding": {
        "plot_superposition": (1, (0.0, 0.0, 0.5, 1.0)),
        "plot_omp_vs_ols": (1, (0.5, 0.0, 1.0, 1.0)),
        "plot_lasso_path": WHOLE,
    },
    "Kernels": {
        "plot_kernel_omp": WHOLE,
        "plot_kernel_dictionaries": (1, (0.0, 0.0, 0.87, 1.0)),
        "plot_kscdl": (1, (0.0, 0.0, 0.355, 1.0)),
        "plot_nystrom_samplers": (1, (0.0, 0.0, 1.0, 0.99)),
        "plot_channels": (1, (0.0, 0.0, 1.0, 0.68)),
    },
    "Classification": {
        "plot_lkdl_digits": (2, (0.0, 0.0, 1.0, 1.0)),
        "plot_directions": (1, (0.0, 0.0, 0.665, 1.0)),
        "plot_grid_search": WHOLE,
        "plot_calibration": (1, (0.0, 0.0, 1.0, 0.99)),
        "plot_ksad": WHOLE,
        "plot_occlusion": (1, (0.0, 0.0, 1.0, 0.42)),
    },
    "Compression": {
        "plot_codec": (2, (0.0, 0.0, 1.0, 0.39)),
    },
    "Looking inside": {
        "plot_contact_sheet": (2, (0.0, 0.0, 0.6, 0.33)),
        "plot_supervised": (1, (0.0, 0.0, 0.5, 1.0)),
        "plot_preimages": (2, (0.0, 0.0, 0.62, 1.0)),
    },
}
ORDER = [name for examples in THEMES.values() for name in examples]
THUMBNAIL = (480, 320)
# Line drawings are drawn as small as a thumbnail: so many of its dots are an inch of letters.
SMALL_DPI = 120

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
    "savefig.transparent": True,  # the page gives pictures their ground, light or dark
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
    paths, sources, figures = [], [], []
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
        figures.append(value)
    save_small(figures, paths)
    return marked(figure_rst(paths, gallery_conf["src_dir"], srcsetpaths=sources), figures)


def scrape_pyplot(block, block_vars, gallery_conf, **kwargs):
    """Save figures of pyplot."""
    figures = [plt.figure(number) for number in plt.get_fignums()]
    rst = matplotlib_scraper(block, block_vars, gallery_conf, **kwargs)
    if figures:
        save_small(figures, block_vars["image_path_iterator"].paths[-len(figures) :])
    return marked(rst, figures)


def save_small(figures, paths):
    """Draw line drawings once more, small, so that letters are readable in a thumbnail."""
    for figure, path in zip(figures, paths, strict=True):
        if is_line_drawing(figure):
            width, height = figure.get_size_inches()
            size = THUMBNAIL[0] / SMALL_DPI, THUMBNAIL[0] / SMALL_DPI * min(0.66, height / width)
            figure.set_size_inches(size)
            figure.savefig(Path(path).with_name(f"{Path(path).stem}_small.png"), dpi=2 * SMALL_DPI)
            figure.set_size_inches(width, height)


def is_line_drawing(figure):
    """Tell whether a figure is of lines and letters only, which a page may turn light on dark."""
    return not any(
        ax.images or any(isinstance(part, QuadMesh) for part in ax.collections)
        for ax in figure.axes
    )


def marked(rst, figures):
    """Return what a scraper wrote, with line drawings marked for the style sheet."""
    if not figures or not all(map(is_line_drawing, figures)):
        return rst
    # One class is all that sphinx-gallery's directive keeps.
    return rst.replace(":class: sphx-glr-single-img", ":class: line-drawing")


def cut_thumbnails(images):
    """Write the thumbnails: the part of a figure that says what an example is about."""
    for examples in THEMES.values():
        for name, (number, (left, top, right, bottom)) in examples.items():
            source = images / f"sphx_glr_{name}_{number:03}_small.png"
            if (left, top, right, bottom) != WHOLE[1] or not source.exists():
                source = images / f"sphx_glr_{name}_{number:03}_2_00x.png"
            if not source.exists():  # built without running the examples
                continue
            picture = Image.open(source).convert("RGBA")
            width, height = picture.size
            part = picture.crop(
                (int(left * width), int(top * height), int(right * width), int(bottom * height))
            )
            part.thumbnail((THUMBNAIL[0] - 16, THUMBNAIL[1] - 16), Image.Resampling.LANCZOS)
            card = Image.new("RGBA", THUMBNAIL, "white")
            card.alpha_composite(
                part, ((THUMBNAIL[0] - part.width) // 2, (THUMBNAIL[1] - part.height) // 2)
            )
            card.convert("RGB").save(images / "thumb" / f"sphx_glr_{name}_thumb.png")


def write_index(folder, examples_folder):
    """Write the gallery's first page: cards by theme."""
    head = (examples_folder / "GALLERY_HEADER.rst").read_text(encoding="utf-8").rstrip()
    there = sorted(path.stem for path in examples_folder.glob("plot_*.py"))
    themes = {theme: list(examples) for theme, examples in THEMES.items()}
    themes["More"] = [name for name in there if name not in ORDER]
    parts = [head]
    for theme, names in themes.items():
        if names:
            parts += [f"{theme}\n{'-' * len(theme)}", ".. grid:: 1 2 3 3\n   :gutter: 3"]
            parts += [card(name, examples_folder) for name in names]
    parts.append(".. toctree::\n   :hidden:\n")
    pages = "\n".join(f"   {name}" for names in themes.values() for name in names)
    (folder / "index.rst").write_text("\n\n".join(parts) + "\n" + pages + "\n", encoding="utf-8")


def card(name, examples_folder):
    """Return the card of an example: its picture and its title."""
    title = (examples_folder / f"{name}.py").read_text(encoding="utf-8").splitlines()[1]
    return (
        f"   .. grid-item-card:: {title}\n"
        f"      :link: {name}\n"
        "      :link-type: doc\n"
        f"      :img-top: images/thumb/sphx_glr_{name}_thumb.png\n"
        f"      :img-alt: {title}\n"
        "      :class-card: example\n"
    )


def group(app):
    """Put themes and thumbnails in the place of what sphinx-gallery made."""
    folder = Path(app.srcdir) / "gallery"
    cut_thumbnails(folder / "images")
    write_index(folder, Path(app.srcdir).parent / "examples")


def setup(app):
    """Come after sphinx-gallery (500)."""
    app.connect("builder-inited", group, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

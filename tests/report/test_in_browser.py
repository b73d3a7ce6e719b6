"""Pages in a real browser: nothing wider than its window, a silent console, no empty pictures.

Chromium opens each page in frames as wide as a desktop's and as a phone's window, in light and
dark, and a script beside them writes down what it measures. Skipped where there is no Chromium.
"""

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from kernelatoms import KSVD, ClassDictionaryClassifier, CRCClassifier, KernelLinearizer
from kernelatoms.report import (
    Picture,
    RowsOfFile,
    Section,
    Table,
    images_figure,
    write_model_report,
    write_report,
)
from kernelatoms.report.page import Fold

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome", "chrome")
     if (path := shutil.which(name))), None,
)  # fmt: skip
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here"),
]

WIDTHS = (1280, 390)
DOCS = Path(__file__).resolve().parents[2] / "docs" / "_build" / "html"
# What dark and light are called in Chromium's settings.
SCHEMES = {"light": 1, "dark": 0}

MEASURE = """<!DOCTYPE html><meta charset="utf-8"><body>%s<pre id="found"></pre><script>
addEventListener("load", () => setTimeout(() => {
  const found = [...document.querySelectorAll("iframe")].map(frame => {
    const page = frame.contentDocument, view = frame.contentWindow;
    const images = [...page.images].filter(image =>
      !image.closest("details:not([open])") && image.checkVisibility());
    const scrolls = e => e && e !== page.body
      && (["auto", "scroll"].includes(view.getComputedStyle(e).overflowX)
          || scrolls(e.parentElement));
    const beyond = [...page.querySelectorAll("body *")].filter(e =>
      e.getBoundingClientRect().right > view.innerWidth + 1
      && e.checkVisibility({visibilityProperty: true}) && !scrolls(e));
    return {
      name: frame.title, width: view.innerWidth, scroll: page.documentElement.scrollWidth,
      beyond: beyond.slice(0, 5).map(e => e.outerHTML.slice(0, 80)),
      dark: view.matchMedia("(prefers-color-scheme: dark)").matches,
      images: images.length,
      empty: images.filter(i => !i.complete || !i.naturalWidth || !i.clientHeight).length,
      ground: view.getComputedStyle(page.body).backgroundColor,
      picture: page.querySelector("figure img")
        && view.getComputedStyle(page.querySelector("figure img")).filter,
    };
  });
  document.getElementById("found").textContent = JSON.stringify(found);
}, 500));
</script>"""


def look_at(pages, folder, scheme):
    """Return what Chromium measures of every page at every width, and what its console says."""
    frames = "".join(
        f'<iframe title="{page.name}" src="{page.as_uri()}" '
        f'style="width: {width}px; height: 900px; border: 0"></iframe>'
        for page in pages for width in WIDTHS
    )  # fmt: skip
    outer = folder / f"outer-{scheme}.html"
    outer.write_text(MEASURE % frames, encoding="utf-8")
    done = subprocess.run(
        [CHROMIUM, "--headless=new", "--no-sandbox", "--allow-file-access-from-files",
         f"--user-data-dir={folder / scheme}", "--window-size=1400,1000", "--enable-logging=stderr",
         f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}",
         "--virtual-time-budget=20000", "--dump-dom", outer.as_uri()],
        capture_output=True, text=True, timeout=300, check=True,
        env={**os.environ, "HOME": str(folder)},
    )  # fmt: skip
    text = re.search(r'<pre id="found">(.+?)</pre>', done.stdout, re.DOTALL)
    assert text, done.stderr[-2000:]
    # Chromium gives all that a page says the level INFO, errors too; the documentation's theme
    # says what it does, after its own mark.
    console = [
        line for line in done.stderr.splitlines()
        if ":CONSOLE" in line and not re.search(r'CONSOLE:\d+\] "\[PST\]: ', line)
    ]  # fmt: skip
    return json.loads(html.unescape(text[1])), console


def check(found, console, scheme):
    assert console == []
    for page in found:
        assert page["dark"] == (scheme == "dark"), page
        assert page["scroll"] <= page["width"], page
        assert page["beyond"] == [], page
        assert page["empty"] == 0, page


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Reports of images, of a table in many scripts, of many classes, and a page with all parts."""
    folder = tmp_path_factory.mktemp("pages")
    rng = np.random.default_rng(0)
    X, y = load_digits(return_X_y=True)
    quick = ClassDictionaryClassifier(KSVD(6, n_nonzero_coefs=2, max_iter=2, random_state=0))
    kernel_map = KernelLinearizer(n_landmarks=60, random_state=0)
    lkdl = make_pipeline(Normalizer(), kernel_map, quick).fit(X[:400], y[:400])
    crc = make_pipeline(Normalizer(), CRCClassifier(n_neighbors=30)).fit(X[:300], y[:300])
    made = [
        write_model_report(folder / "lkdl.html", lkdl, X[400:600], y[400:600], image_shape=(8, 8)),
        write_model_report(folder / "crc.html", crc, X[400:500], y[400:500], image_shape=(8, 8)),
    ]
    labels = np.array(
        ["中文标签", "العربية", "हिन्दी", "עברית", "ไทย", "😀", "a very long label of words"]
    )
    kinds = rng.integers(0, len(labels), 280)
    table = rng.normal(size=(len(labels), 5))[kinds] + 0.5 * rng.normal(size=(280, 5))
    model = make_pipeline(StandardScaler(), quick).fit(table[::2], labels[kinds[::2]])
    rows = RowsOfFile(
        2 * np.arange(140) + 1, {"客户号": [f"客户-{i}" for i in range(140)]}, 300, 0.97
    )
    names = ["幅", "عرض", "चौड़ाई", "רוחב", "a_very_long_name_of_a_column_that_goes_on_and_on"]
    made.append(
        write_model_report(
            folder / "world.html",
            model,
            table[1::2],
            labels[kinds[1::2]],
            rows=rows,
            feature_names=names,
            facts={"columns": ", ".join(f"column_{i}" for i in range(300))},
        )
    )
    kinds = np.tile(np.arange(60), 8)
    many = rng.normal(size=(60, 200))[kinds] + rng.normal(size=(480, 200))
    few = ClassDictionaryClassifier(KSVD(2, n_nonzero_coefs=1, max_iter=2, random_state=0))
    few.fit(many[:240], np.char.add("kind ", kinds[:240].astype(str)))
    made.append(
        write_model_report(
            folder / "many.html", few, many[240:], np.char.add("kind ", kinds[240:].astype(str))
        )
    )
    cells = [[f"row {i}", *(f"{i * j:,} of 1,000 rows" for j in range(14))] for i in range(5)]
    wide = Table(["name", *(f"column {j}" for j in range(14))], cells)
    photograph = Picture(images_figure(rng.random((4, 48)), (4, 4, 3)), "In colour.", "Four images")
    section = Section("All parts", "word" * 60, wide, [photograph], [Fold("More", wide)])
    made.append(write_report(folder / "parts.html", "A_title_without_spaces_" * 8, [section]))
    return made


@pytest.mark.parametrize("scheme", SCHEMES)
def test_reports_fit_their_windows(pages, tmp_path, drawn, scheme):
    found, console = look_at(pages, tmp_path, scheme)
    check(found, console, scheme)
    assert len(found) == 2 * len(pages)
    assert {page["width"] for page in found} == set(WIDTHS)
    assert all(page["images"] for page in found)
    # Dark pages turn their pictures, but for photographs.
    grounds = {page["ground"] for page in found}
    assert grounds == ({"rgb(19, 20, 22)"} if scheme == "dark" else {"rgb(246, 247, 249)"})
    for page in found:
        turned = scheme == "dark" and page["name"] != "parts.html"
        assert (page["picture"] != "none") == turned, page


@pytest.mark.parametrize(
    "flaw",
    [
        '<script>console.error("flaw")</script>',
        "<script>nowhere.to_be_found()</script>",
        '<p style="width: 3000px">wide</p>',
        '<img src="missing.png" alt="">',
    ],
)
def test_flaws_are_seen(tmp_path, flaw):
    page = tmp_path / "page.html"
    scrolls = '<div style="overflow-x: auto"><p style="width: 3000px">in a box</p></div>'
    page.write_text(f"<!DOCTYPE html><body><p>text</p>{scrolls}{flaw}", encoding="utf-8")
    found, console = look_at([page], tmp_path, "light")
    with pytest.raises(AssertionError):
        check(found, console, "light")
    page.write_text(f"<!DOCTYPE html><body><p>text</p>{scrolls}", encoding="utf-8")
    check(*look_at([page], tmp_path, "light"), "light")


@pytest.mark.skipif(not (DOCS / "index.html").is_file(), reason="the docs are not built")
@pytest.mark.parametrize("scheme", SCHEMES)
def test_documentation_fits_its_windows(tmp_path, scheme):
    found = sorted(
        page for page in DOCS.rglob("*.html")
        if page.relative_to(DOCS).parts[0] not in ("_modules", "_static", "genindex.html")
    )  # fmt: skip
    for start in range(0, len(found), 12):
        check(*look_at(found[start : start + 12], tmp_path, scheme), scheme)

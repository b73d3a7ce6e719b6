"""Pages of docs/decisions: numbered, listed, and named rightly by the modules they explain."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted(path.stem for path in (ROOT / "docs" / "decisions").glob("[0-9]*.md"))


def test_numbers_follow_each_other():
    assert [int(page[:3]) for page in PAGES] == list(range(1, len(PAGES) + 1))


def test_the_index_lists_every_page_once():
    index = (ROOT / "docs" / "decisions" / "index.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\d{3}-[\w-]+$", index, re.MULTILINE)) == PAGES


def test_modules_and_documents_name_pages_that_exist():
    files = [*(ROOT / "src").rglob("*.py"), *ROOT.glob("*.md")]
    named = {
        (path.name, page)
        for path in files
        for page in re.findall(r"docs/decisions/(\d[\w-]+)\.md", path.read_text(encoding="utf-8"))
    }
    assert named
    assert not [(name, page) for name, page in named if page not in PAGES]

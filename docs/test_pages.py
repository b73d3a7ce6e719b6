"""The code on the pages runs and prints what the pages say; the API page misses no name."""

import doctest
import re
import shlex
from pathlib import Path

import pytest
from matplotlib.figure import Figure

import kernelatoms
from kernelatoms import codec, coding, datasets, report, similarity
from kernelatoms.cli.app import main

DOCS = Path(__file__).parent
MADE = {"_build", "gallery", "generated"}
PAGES = {
    str(path.relative_to(DOCS)): path
    for path in sorted(DOCS.rglob("*.md"))
    if not MADE & set(path.relative_to(DOCS).parts)
}
FENCE = re.compile(r"^ *(```|~~~|:::).*$", re.MULTILINE)
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DRAWN = re.compile(r"^ *```\{drawn\} (\w+)$", re.MULTILINE)
# Modules that need not be there. make test-torch has them, and runs the pages that import them.
OPTIONAL = re.compile(r"^>>> (?:import|from) (torch|safetensors)\b", re.MULTILINE)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL


@pytest.mark.parametrize("page", [name for name, p in PAGES.items() if ">>>" in p.read_text()])
def test_examples_on_the_page_do_what_it_says(page, monkeypatch, tmp_path):
    path = PAGES[page]
    for module in OPTIONAL.findall(path.read_text(encoding="utf-8")):
        pytest.importorskip(module)
    monkeypatch.syspath_prepend(path.parent)
    monkeypatch.chdir(tmp_path)
    # Fences become empty lines: numbers of lines stay true, and no fence is taken for output.
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    examples = doctest.DocTestParser().get_doctest(text, {}, page, str(path), 0)
    failures = []
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    result = runner.run(examples, out=failures.append, clear_globs=False)
    assert result.attempted > 0
    assert not result.failed, "".join(failures)
    for name in DRAWN.findall(path.read_text(encoding="utf-8")):
        assert isinstance(examples.globs[name], Figure), f"{page} draws {name}, which is no figure"


PLAIN = {
    name: blocks
    for name, path in {**PAGES, "README.md": DOCS.parent / "README.md"}.items()
    if (blocks := [b for b in BLOCK.findall(path.read_text(encoding="utf-8")) if ">>>" not in b])
}


@pytest.mark.parametrize("page", PLAIN)
def test_code_without_prompts_runs(page, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    shared = {}
    for block in PLAIN[page]:
        exec(compile(block, page, "exec"), shared)


def test_what_the_page_says_of_speed_was_measured():
    def numbers(path, heading):
        text = path.read_text(encoding="utf-8")
        section = re.split("^#", text.partition(f"{heading}\n")[2], maxsplit=1, flags=re.MULTILINE)
        return set(re.findall(r"\d+(?:[.,]\d+)*", section[0]))

    said = numbers(PAGES["guide/gpu.md"], "### Memory and speed")
    assert said
    assert said <= numbers(DOCS.parent / "benchmarks" / "RESULTS.md", "## On a GPU")


TERMINAL = re.compile(
    r"^( *)```\{terminal(-file)?\} ?(\S*)\n((?: *:\w+:[^\n]*\n)*)(.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)
COMMANDS = {
    name: blocks
    for name, path in PAGES.items()
    if (blocks := TERMINAL.findall(path.read_text(encoding="utf-8")))
}


def exit_code_of(line):
    """Return how a command line ends, without a shell; other programs than ours are not run."""
    program, *arguments = shlex.split(line, comments=True)
    if program != "kernelatoms":
        return 0
    return main(arguments)


@pytest.mark.parametrize("page", COMMANDS)
def test_commands_on_the_page_end_as_it_says(page, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KERNELATOMS_DATA", raising=False)
    for indent, is_file, name, options, body in COMMANDS[page]:
        lines = [line.removeprefix(indent) for line in body.splitlines()]
        if is_file:
            (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
            continue
        expected = int(found[1]) if (found := re.search(r":exit: (\d+)", options)) else 0
        commands = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        assert commands, f"a terminal of {page} runs nothing"
        for command in commands:
            assert exit_code_of(command) == expected, f"{command}\n{capsys.readouterr()}"


def public_names():
    yield from (f"kernelatoms.{name}" for name in kernelatoms.__all__ if name != "__version__")
    for room in (datasets, coding, report, similarity):
        yield from (f"{room.__name__}.{name}" for name in room.__all__)
    # Most of them are names of kernelatoms.
    yield from (
        f"kernelatoms.codec.{name}" for name in codec.__all__ if name not in kernelatoms.__all__
    )


@pytest.mark.parametrize("name", list(public_names()))
def test_every_public_name_is_on_the_api_page(name):
    listed = (DOCS / "api" / "index.rst").read_text(encoding="utf-8").split()
    assert name in listed, f"add the line '   {name}' to docs/api/index.rst"

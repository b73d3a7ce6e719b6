"""What commands print, on the page: they are run in a temporary folder when the page is built.

A page writes, in this order,

.. code-block:: markdown

   ```{terminal-file} visits.csv
   name,visits
   ...
   ```

   ```{terminal}
   $ kernelatoms info visits.csv
   ```

The commands of a page share one folder. A command that fails is a warning, and so fails the build,
unless the block says ``:exit: 2``. ``:lines: 8`` shows the first lines of a file, or of what each
command prints.
``docs/test_pages.py`` runs the same commands without building anything.
"""

import multiprocessing
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

import kernelatoms

logger = logging.getLogger(__name__)

SOURCES = Path(kernelatoms.__file__).parent
WIDTH = 92
# A first run compiles the inner loops and says so, which is no part of what a command prints.
PASSED_OVER = ("kernelatoms compiles its inner loops",)

# Imports take two seconds of every process; here they are done once, by that from which commands
# are forked. What needs a shell gets one.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    ["kernelatoms.cli.app", "kernelatoms.report.model", "kernelatoms.files.models.model_file",
     "skops.io", "pyarrow.csv", "matplotlib.figure", "matplotlib.backends.backend_svg"]
)  # fmt: skip
SHELL = set("|<>&;*$\n`")

_folders = {}


def folder_of(docname):
    """Return the folder in which the commands of a page run."""
    if docname not in _folders:
        _folders[docname] = tempfile.TemporaryDirectory(prefix="kernelatoms-docs-")
    return Path(_folders[docname].name)


def run(command, folder):
    """Run a command line in a folder; return what it printed, and its exit code."""
    environment = {
        "COLUMNS": str(WIDTH),
        "NO_COLOR": "1",
        "PYTHONPATH": os.pathsep.join([str(SOURCES.parent), os.environ.get("PYTHONPATH", "")]),
        "PYTHONUNBUFFERED": "1",  # results and notes in the order in which they were said
        "PYTHON": sys.executable,
        "KERNELATOMS_DATA": "",
    }
    said = folder / ".said"
    if command.startswith("kernelatoms ") and not SHELL & set(command):
        argv = shlex.split(command, comments=True)
        process = FORKS.Process(target=be_the_command, args=(argv, folder, environment, said))
        process.start()
        process.join(timeout=300)
        code = process.exitcode
    else:
        line = f'kernelatoms() {{ "$PYTHON" -m kernelatoms "$@"; }}\n{command}'
        with said.open("wb") as file:
            code = subprocess.run(
                ["sh", "-c", line], cwd=folder, env={**os.environ, **environment}, stdout=file,
                stderr=subprocess.STDOUT, timeout=300, check=False,
            ).returncode  # fmt: skip
    lines = [line.rstrip() for line in said.read_text(encoding="utf-8").splitlines()]
    said.unlink()
    return [line for line in lines if not line.startswith(PASSED_OVER)], code


def be_the_command(argv, folder, environment, said):
    """Be ``kernelatoms ...``, in a process that has imported but not done anything."""
    os.chdir(folder)
    os.environ.update(environment)
    file = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, 1)
    os.dup2(file, 2)
    sys.stdout.reconfigure(write_through=True, line_buffering=True)
    sys.argv = argv
    from kernelatoms.__main__ import main

    main()


class TerminalFile(SphinxDirective):
    """A small file, shown and put into the page's folder."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar = {"lines": directives.positive_int}

    def run(self):
        text = "\n".join(self.content) + "\n"
        (folder_of(self.env.docname) / self.arguments[0]).write_text(text, encoding="utf-8")
        most = self.options.get("lines", len(self.content))
        if left := len(self.content) - most:
            text = "\n".join([*self.content[:most], f"... and {left:,} lines more"])
        caption = nodes.caption("", "", nodes.literal(text=self.arguments[0]))
        box = nodes.container("", literal_block=True, classes=["literal-block-wrapper"])
        box += [caption, nodes.literal_block(text, text, language="text")]
        return [box]


class Terminal(SphinxDirective):
    """Commands, each after a dollar sign, and what they print."""

    has_content = True
    option_spec: ClassVar = {"lines": directives.positive_int, "exit": directives.nonnegative_int}

    def run(self):
        for part in ("cli", "files"):
            for path in (SOURCES / part).glob("*.py"):
                self.env.note_dependency(str(path))
        shown = []
        for command in commands(self.content):
            printed, code = run(command, folder_of(self.env.docname))
            if code != self.options.get("exit", 0):
                logger.warning(
                    "%r ended with exit code %d:\n%s", command, code, "\n".join(printed),
                    location=self.get_location(),
                )  # fmt: skip
            most = self.options.get("lines", len(printed))
            printed = printed[:most] + ["..."] * (len(printed) > most)
            shown += [f"$ {command}".replace("\n", "\n> "), *printed, ""]
        text = "\n".join(shown).rstrip()
        return [nodes.literal_block(text, text, language="console", classes=["terminal"])]


def commands(lines):
    r"""Return the commands of a block: each begins with a dollar sign, and may go on.

    >>> commands(["$ ls \\", "  *.csv", "$ pwd"])
    ['ls \\\n  *.csv', 'pwd']
    """
    found = []
    for line in lines:
        if line.startswith("$ "):
            found.append(line[2:])
        elif line.strip():
            found[-1] += "\n" + line
    return found


def on_read(app, doctree):
    """Remove a page's folder when the page is read."""
    if folder := _folders.pop(app.env.docname, None):
        folder.cleanup()


def setup(app):
    """Offer the directives to Sphinx."""
    app.add_directive("terminal", Terminal)
    app.add_directive("terminal-file", TerminalFile)
    app.connect("doctree-read", on_read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

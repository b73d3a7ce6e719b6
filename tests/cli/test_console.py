"""Messages of the library name arguments; the command line names its flags."""

import pytest

from kernelatoms.cli.console import in_flags


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("label: t.csv has no column 'a'.", "--label: t.csv has no column 'a'."),
        ("Error: path: t.csv is read-only; force=True replaces it.",
         "Error: --output: t.csv is read-only; --force replaces it."),
        ("Note: names? header=False if it is one.", "Note: names? --no-header if it is one."),
        ("decimal=',' or encoding='cp1252'.", "--decimal , or --encoding cp1252."),
        ("keep=['a b', \"it's\"] learns", "--keep 'a b' --keep 'it'\"'\"'s' learns"),
        ("allow them: trusted=['a.b.C', 'd.E'].", "allow them: --trust a.b:C --trust d:E."),
        ("allow more by max_size.", "allow more by --max-size, such as --max-size 20GiB."),
    ],
)  # fmt: skip
def test_arguments_become_flags(text, shown):
    assert in_flags(text) == shown


@pytest.mark.parametrize(
    "text", ["a label: b", "relabel='x'", r"rows='\x'", "keep=[1]", "label='x", "drop=['a"]
)
def test_other_texts_stay(text):
    assert in_flags(text) == text

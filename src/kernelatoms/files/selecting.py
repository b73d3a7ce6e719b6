"""Which columns of a table are approximate: floats, unless the user says otherwise."""

from collections.abc import Sequence
from pathlib import Path

from kernelatoms.files.tables.table import shortened


def choose_columns(
    path: Path,
    names: Sequence[str],
    defaults: Sequence[str],
    approximate: Sequence[str],
    exact: Sequence[str],
    all_exact: bool,
) -> tuple[list[int], list[int]]:
    """Return the places of approximate columns and those of exact ones.

    Parameters
    ----------
    path : Path
        The file, for messages.
    names : sequence of str
        Its columns; a name that several have stands for all of them.
    defaults : sequence of str
        Of each: "approximate" (floats), "exact" (whole numbers) or "no numbers".
    approximate, exact : sequence of str
        What the user wants otherwise.
    all_exact : bool
        Whether all are exact after all, because no error is allowed.
    """
    for argument, wanted in (("approximate", approximate), ("exact", exact)):
        for name in wanted:
            if name not in names:
                raise ValueError(
                    f"{argument}: {path} has no column {name!r}; it has {shortened(names)}."
                )
    both = [name for name in approximate if name in exact]
    if both:
        raise ValueError(f"{both[0]!r} is named in both approximate and exact.")
    chosen = []
    for i, (name, default) in enumerate(zip(names, defaults, strict=True)):
        if name in approximate and default == "no numbers":
            raise ValueError(f"approximate: the column {name!r} of {path} holds no numbers.")
        if name in approximate or (default == "approximate" and name not in exact):
            chosen.append(i)
    chosen = [] if all_exact else chosen
    return chosen, sorted(set(range(len(names))) - set(chosen))

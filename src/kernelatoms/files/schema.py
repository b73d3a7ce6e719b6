"""What skops's description of an object says, looked at before skops reads it.

``schema.json`` is a tree of nodes, dictionaries that name a loader and a type. skops knows a node
that it has met by its ``__id__`` and takes the first for all others: a few hundred bytes can so
stand for more nodes than there is time to visit. It writes such an object again wherever it
occurs, though. We ask for that: nodes with one ``__id__`` must be equally large, which leaves
neither short references nor circles, and every walk over the objects is a walk over this text.
"""

from dataclasses import dataclass
from typing import Any

from kernelatoms.files.sklearn_types import RULES
from kernelatoms.limits import MODEL_LEVELS, MODEL_NODES

# Their content goes to compiled code as it is, or they name what is called in a text of their own.
_LOADERS_TO_TRUST = ("RandomGeneratorNode", "SparseMatrixNode")


@dataclass(frozen=True)
class Outline:
    """What a schema refers to: members of the archive, those that are arrays, types to trust."""

    files: frozenset[str]
    arrays: frozenset[str]
    suspicious: frozenset[str]


def outline(schema: Any) -> Outline:
    """Visit every node of a schema once, and refuse what skops does not write."""
    places: list[tuple[Any, int, int]] = [(schema, -1, 0)]
    for i, (value, _, level) in enumerate(places):  # grows meanwhile
        if level > MODEL_LEVELS:
            raise ValueError(f"its objects are nested more than {MODEL_LEVELS} levels deep")
        inside = value.values() if isinstance(value, dict) else value
        places += [(part, i, level + 1) for part in inside if isinstance(part, dict | list)]
        if len(places) > 4 * MODEL_NODES:
            raise ValueError("it describes more objects than a model has")
    sizes = [int(_is_node(value)) for value, _, _ in places]
    for i in range(len(places) - 1, 0, -1):
        sizes[places[i][1]] += sizes[i]
    if sizes[0] > MODEL_NODES:
        raise ValueError(f"it describes {sizes[0]:,} objects, more than {MODEL_NODES:,}")
    nodes = [(value, size) for (value, _, _), size in zip(places, sizes, strict=True) if size]
    return _outline([(node, size) for node, size in nodes if _is_node(node)])


def is_plain(name: str) -> bool:
    """Whether a type is none of scikit-learn's, or one for whose attributes there are rules."""
    return name.partition(".")[0] != "sklearn" or name in RULES


def _outline(nodes: list[tuple[dict[str, Any], int]]) -> Outline:
    files, arrays, suspicious = set(), set(), set()
    size_of: dict[int, int] = {}
    for node, size in nodes:
        loader, kind, module = (node.get(f"__{key}__") for key in ("loader", "class", "module"))
        if not (isinstance(loader, str) and isinstance(kind, str) and isinstance(module, str)):
            raise ValueError("it refers to an object instead of describing it")
        number = node.get("__id__")
        if number is not None:
            if type(number) is not int:
                raise ValueError(f"it numbers an object {number!r}")
            if size_of.setdefault(number, size) != size:
                raise ValueError("it describes one object in two ways")
        name = f"{module}.{kind}"
        if not is_plain(name) or loader in _LOADERS_TO_TRUST:
            suspicious.add(name)
        if "file" in node:
            files.add(node["file"])
        if loader == "NdArrayNode" and node.get("type") == "numpy":
            arrays.add(node["file"])
    return Outline(frozenset(files), frozenset(arrays), frozenset(suspicious))


def _is_node(value: Any) -> bool:
    return isinstance(value, dict) and ("__loader__" in value or "__id__" in value)

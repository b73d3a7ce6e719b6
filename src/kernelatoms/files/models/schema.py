"""Checks of ``schema.json``, skops's description of the objects, before skops reads it.

The description is a tree of nodes, dictionaries that name a loader and a type. skops recognises a
node that it has met by its ``__id__`` and reuses the first: a few hundred bytes could describe more
nodes than there is time to visit. But skops writes such an object again wherever it occurs. This is
required here: nodes with one ``__id__`` must be equally large, with the texts and members in them.
That leaves neither short references nor cycles, and every walk over the objects is a walk over
this text. A member of the archive belongs to one ``__id__``, so it is read once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kernelatoms.files.models.sklearn_types import RULES
from kernelatoms.limits import (
    MODEL_LEVELS,
    MODEL_NESTED,
    MODEL_NODES,
    MODEL_REFERENCES,
    MODEL_SIZE,
)

# Their content goes to compiled code as it is, or they name what is called in a text of their own.
_LOADERS_TO_TRUST = ("RandomGeneratorNode", "SparseMatrixNode")
# Made of a number, they are as large as it says.
_TYPES_TO_TRUST = ("numpy.void",)


@dataclass(frozen=True)
class Outline:
    """What a schema refers to."""

    files: frozenset[str]  # members of the archive
    arrays: frozenset[str]  # those members that are arrays
    loaders: frozenset[tuple[str, str]]  # each type with the skops node that builds it
    suspicious: frozenset[str]  # types that must be trusted


def outline(schema: Any) -> Outline:
    """Visit every node of a schema once, and refuse what skops does not write."""
    places = _places(schema)
    sizes = _sums([int(_is_node(value)) for value, _, _ in places], places)
    if sizes[0] > MODEL_NODES:
        raise ValueError(f"it describes {sizes[0]:,} objects, more than {MODEL_NODES:,}")
    _check_nesting(places)
    nodes = [(value, size) for (value, _, _), size in zip(places, sizes, strict=True)]
    return _outline([(node, size) for node, size in nodes if _is_node(node)])


def check_weights(schema: Any, member_sizes: Mapping[str, int]) -> None:
    """Refuse short references to long texts and large arrays, or too many to one."""
    places = _places(schema)
    weights = _sums([_weight(value, member_sizes) for value, _, _ in places], places)
    if weights[0] > MODEL_REFERENCES * max(MODEL_SIZE, sum(member_sizes.values())):
        raise ValueError("it refers to the same arrays again and again")
    weight_of: dict[int, int] = {}
    for (value, _, _), weight in zip(places, weights, strict=True):
        number = value.get("__id__") if _is_node(value) else None
        if number is not None and weight_of.setdefault(number, weight) != weight:
            raise ValueError("it describes one object in two ways")


def _places(schema: Any) -> list[tuple[Any, int, int]]:
    """Return all lists and dictionaries, each with the index of its parent and its level."""
    places: list[tuple[Any, int, int]] = [(schema, -1, 0)]
    for i, (value, _, level) in enumerate(places):  # grows meanwhile
        if level > MODEL_LEVELS:
            raise ValueError(f"its objects are nested more than {MODEL_LEVELS} levels deep")
        inside = value.values() if isinstance(value, dict) else value
        places += [(part, i, level + 1) for part in inside if isinstance(part, dict | list)]
        if len(places) > 4 * MODEL_NODES:
            raise ValueError("it describes more objects than a model has")
    return places


def _sums(sizes: list[int], places: list[tuple[Any, int, int]]) -> list[int]:
    """Return the size of each place with everything in it."""
    for i in range(len(places) - 1, 0, -1):
        sizes[places[i][1]] += sizes[i]
    return sizes


def _weight(value: Any, member_sizes: Mapping[str, int]) -> int:
    """Return the size of a node's own text and member, without inner nodes."""
    if not _is_node(value):
        return 0
    text, file = value.get("content"), value.get("file")
    return 1 + (len(text) if isinstance(text, str) else 0) + member_sizes.get(file, 0)


def _check_nesting(places: list[tuple[Any, int, int]]) -> None:
    """Refuse deeply nested estimators, of which scikit-learn asks much per level."""
    depths: list[int] = []
    for value, above, _ in places:
        inner = isinstance(value, dict) and str(value.get("__module__")).startswith("sklearn.")
        depths.append((depths[above] if depths else 0) + inner)
    if max(depths) > MODEL_NESTED:
        raise ValueError(f"it nests estimators more than {MODEL_NESTED} levels deep")


def is_plain(name: str) -> bool:
    """Return whether a type is not scikit-learn's, or has rules for its attributes."""
    return name.partition(".")[0] != "sklearn" or name in RULES


def _outline(nodes: list[tuple[dict[str, Any], int]]) -> Outline:
    arrays, loaders, suspicious = set(), set(), set()
    size_of: dict[int, int] = {}
    owner_of: dict[str, Any] = {}
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
        loaders.add((name, loader))
        if not is_plain(name) or loader in _LOADERS_TO_TRUST or name in _TYPES_TO_TRUST:
            suspicious.add(name)
        if "file" in node and (owner_of.setdefault(node["file"], number) != number or not number):
            raise ValueError(f"its member {node['file']!r} is not that of one object")
        if loader == "NdArrayNode" and node.get("type") == "numpy":
            arrays.add(node["file"])
    files = frozenset(owner_of)
    return Outline(files, frozenset(arrays), frozenset(loaders), frozenset(suspicious))


def _is_node(value: Any) -> bool:
    return isinstance(value, dict) and ("__loader__" in value or "__id__" in value)

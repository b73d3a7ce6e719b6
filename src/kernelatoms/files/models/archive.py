"""The container of a model file, checked before skops reads it.

It is a zip archive, which may declare anything. So its members are counted, named and measured
before the first is unpacked; they are unpacked in pieces, up to the size that they declare; and
arrays are checked before memory is allocated. The result is packed again without compression.

Its member ``schema.json`` is skops's description of the objects: a tree of nodes, dictionaries that
name a loader and a type. skops reuses a node that it has met, by its ``__id__``: a few hundred
bytes could describe more nodes than there is time to visit. But skops writes such an object again
wherever it occurs. This is required here: nodes with one ``__id__`` must be equally large, with the
texts and members in them. That leaves neither short references nor cycles. A member of the archive
belongs to one ``__id__``, so it is read once.

Errors are ValueError, or whatever zipfile raises for a damaged archive.
"""

import hashlib
import io
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kernelatoms.files.models.sklearn_types import RULES
from kernelatoms.files.tables.arrays import UnreadableError, read_header
from kernelatoms.limits import (
    MODEL_LEVELS,
    MODEL_MEMBERS,
    MODEL_NESTED,
    MODEL_NODES,
    MODEL_REFERENCES,
    MODEL_SIZE,
    MODEL_TEXT,
    MODEL_VALUES,
    allowed_model_size,
    refuse_over,
)

#: The member that holds format, digests and record; the one that holds skops's description.
HEADER, SCHEMA = "kernelatoms.json", "schema.json"

_PIECE = 1 << 20
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# Their content goes to compiled code as it is, or they name what is called in a text of their own.
_LOADERS_TO_TRUST = ("RandomGeneratorNode", "SparseMatrixNode")
# Made of a number, they are as large as it says.
_TYPES_TO_TRUST = ("numpy.void",)


@dataclass(frozen=True)
class Unpacked:
    """All members but the header: sizes, digests, the schema, and an archive of them."""

    sizes: dict[str, int]
    digests: dict[str, str]
    schema: bytes
    stored: bytes


def check_bounds(archive: zipfile.ZipFile, file_size: int, max_size: int | None = None) -> None:
    """Refuse an archive that declares too many or too large members."""
    members = archive.infolist()
    if len(members) > MODEL_MEMBERS:
        raise ValueError(f"it has {len(members):,} members, more than {MODEL_MEMBERS:,}")
    (name, times), *_ = Counter(member.filename for member in members).most_common(1) or [("", 0)]
    if times > 1:
        raise ValueError(f"two of its members are called {name!r}")
    for member in members:
        if member.flag_bits & 1:
            raise ValueError(f"its member {member.filename!r} is encrypted")
        if member.compress_type not in _METHODS:
            raise ValueError(f"its member {member.filename!r} is compressed in an unknown way")
        if member.filename in (HEADER, SCHEMA) and member.file_size > MODEL_TEXT:
            raise ValueError(
                f"its member {member.filename!r} is of {member.file_size:,} bytes, more than "
                f"{MODEL_TEXT:,}"
            )
    total = sum(member.file_size for member in members)
    refuse_over(allowed_model_size(file_size, max_size), total, file_size)


def read_text(archive: zipfile.ZipFile, name: str) -> bytes:
    """Return the header or the schema, unless it lists too many values."""
    text = b"".join(_pieces(archive, name))
    n_values = sum(map(text.count, (b",", b"[", b"{")))  # or fewer: texts hold such signs too
    if n_values > MODEL_VALUES:
        raise ValueError(
            f"its member {name!r} lists {n_values:,} values, more than {MODEL_VALUES:,}"
        )
    return text


def unpack(archive: zipfile.ZipFile) -> Unpacked:
    """Return all members but the header, as an archive without compression."""
    digests, stored = {}, io.BytesIO()
    with zipfile.ZipFile(stored, "w", zipfile.ZIP_STORED) as target:
        for name in archive.namelist():
            if name != HEADER:
                digests[name] = _copy(archive, target, name)
    with zipfile.ZipFile(stored) as copy:
        sizes = {member.filename: member.file_size for member in copy.infolist()}
        schema = read_text(copy, SCHEMA)
    return Unpacked(sizes, digests, schema, stored.getvalue())


def pack(unpacked: Unpacked, header: bytes) -> bytes:
    """Return an archive of members and header, compressed if that stays readable."""
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED):
        data = io.BytesIO()
        with (
            zipfile.ZipFile(io.BytesIO(unpacked.stored)) as source,
            zipfile.ZipFile(data, "w", method, compresslevel=1) as target,
        ):
            for name in source.namelist():
                _copy(source, target, name)
            target.writestr(HEADER, header)
            total = sum(member.file_size for member in target.infolist())
        if total <= allowed_model_size(data.tell()):
            break
    return data.getvalue()


def check_arrays(stored: bytes, names: set[str]) -> None:
    """Refuse .npy members whose size differs from that of the array they declare."""
    with zipfile.ZipFile(io.BytesIO(stored)) as archive:
        for name in sorted(names):
            size = archive.getinfo(name).file_size
            with archive.open(name) as member:
                try:
                    read_header(io.BytesIO(member.read(1 << 16)), size)
                except UnreadableError as error:
                    raise ValueError(f"its member {name!r} is no array: {error}") from error


def _copy(source: zipfile.ZipFile, target: zipfile.ZipFile, name: str) -> str:
    """Copy a member and return its SHA-256."""
    digest = hashlib.sha256()
    with target.open(name, "w", force_zip64=True) as copy:
        for piece in _pieces(source, name):
            digest.update(piece)
            copy.write(piece)
    return digest.hexdigest()


def _pieces(archive: zipfile.ZipFile, name: str) -> Iterator[bytes]:
    """Unpack a member in pieces: read at once, it might exceed its declared size."""
    left = archive.getinfo(name).file_size
    with archive.open(name) as member:
        while piece := member.read(_PIECE):
            left -= len(piece)
            yield piece
    if left:
        raise ValueError(f"its member {name!r} is not of the size that it declares")


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
    arrays, loaders, suspicious = set(), set(), set()
    size_of: dict[int, int] = {}
    owner_of: dict[str, Any] = {}
    for (node, _, _), size in zip(places, sizes, strict=True):
        if not _is_node(node):
            continue
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
        without_rules = module.partition(".")[0] == "sklearn" and name not in RULES
        if without_rules or loader in _LOADERS_TO_TRUST or name in _TYPES_TO_TRUST:
            suspicious.add(name)
        if "file" in node and (owner_of.setdefault(node["file"], number) != number or not number):
            raise ValueError(f"its member {node['file']!r} is not that of one object")
        if loader == "NdArrayNode" and node.get("type") == "numpy":
            arrays.add(node["file"])
    files = frozenset(owner_of)
    return Outline(files, frozenset(arrays), frozenset(loaders), frozenset(suspicious))


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


def _is_node(value: Any) -> bool:
    return isinstance(value, dict) and ("__loader__" in value or "__id__" in value)

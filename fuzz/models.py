"""Model files: damaged blindly, or rewritten by somebody who knows the format.

A file that is refused must be refused by ``ModelFileError``. One that loads must be usable: its
methods work, or say in words what they do not take. One that loads although its digests were not
made again was not really changed: it gives the answers of the file it comes from.
"""

import copy
import hashlib
import io
import json
import tempfile
import traceback
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.impute import SimpleImputer
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler

from fuzz.genuine import genuine
from fuzz.mutations import NUMBERS, WORDS, changed_json, damaged, odd_json, odd_nest, places_of
from fuzz.running import Play, check_words
from kernelatoms import (
    KSAD,
    KSCDL,
    KSVD,
    MOD,
    ClassDictionaryClassifier,
    CRCClassifier,
    DKSVDClassifier,
    FDDLClassifier,
    KernelCodec,
    KernelKSVD,
    KernelLinearizer,
    KernelMOD,
    KSADClassifier,
    LCKSVDClassifier,
    NearestImputer,
    RowNormalizer,
    SparseCoder,
    SRCClassifier,
    TrainingImputer,
    load_model,
    save_model,
)
from kernelatoms.cli import info
from kernelatoms.files import ModelFileError, ModelRecord

Rng = np.random.Generator
Members = dict[str, bytes]

_HEADER, _SCHEMA = "kernelatoms.json", "schema.json"


@dataclass(frozen=True)
class _Original:
    """A model file, rows for it, and what it says of them."""

    data: bytes
    members: Members
    X: Any
    answers: list[Any]


def prepare() -> Play:
    """Fit and write one model of each kind, and return how a case is played."""
    warnings.simplefilter("ignore")
    originals = [_original(model, X, _record()) for model, X, _ in _models()]
    others = [_original(model, X, ModelRecord()) for _, model, X in genuine()]
    bomb = _bomb(originals[0], 5 << 28)

    def play(rng: Rng, folder: Path) -> str:
        chosen = originals if rng.random() < 0.5 else others
        original = chosen[rng.integers(len(chosen))]
        change, knows = _CHANGES[rng.integers(len(_CHANGES))]
        path = folder / "model.skops"
        if rng.random() < 0.002:
            path.write_bytes(bomb)
        else:
            path.write_bytes(change(rng, original))
        try:
            model, _ = load_model(path)
        except ModelFileError as error:
            check_words(error)
            return "refused"
        info._model_facts(path)
        if not knows:
            _same(_answers(model, original.X), original.answers)
            return "unharmed"
        return _use(model, original.X)

    return play


def _models() -> list[tuple[Any, Any, Any]]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6))
    y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    few: dict[str, Any] = {"n_nonzero_coefs": 2, "max_iter": 3, "random_state": 0}
    learners = [
        KSVD(8, **few),
        MOD(8, **few),
        MOD(8, alpha=0.1, max_iter=3, random_state=0),
        KernelKSVD(8, kernel="rbf", **few),
        KernelMOD(8, kernel="poly", coordinates=0.1, **few),
        KSCDL(8, max_iter=3, random_state=0),
        KernelLinearizer("rbf", n_landmarks=12, random_state=0),
        ClassDictionaryClassifier(KSVD(6, n_nonzero_coefs=2, max_iter=3), random_state=0),
        ClassDictionaryClassifier(
            KernelKSVD(6, kernel="rbf", n_nonzero_coefs=2, max_iter=3), random_state=0
        ),
        make_pipeline(
            SimpleImputer(strategy="median"),
            StandardScaler(),
            KernelLinearizer("rbf", n_landmarks=12, random_state=0),
            ClassDictionaryClassifier(KSVD(6, n_nonzero_coefs=2, max_iter=3), random_state=0),
        ),
    ]
    learners += [
        CRCClassifier("rbf", mu=0.1), CRCClassifier(mu=0.1, n_neighbors=9),
        SRCClassifier(n_neighbors=9), KSAD(4, kernel="rbf", max_iter=2, random_state=0),
        KSADClassifier(4, kernel="rbf", max_iter=2, random_state=0),
        DKSVDClassifier(6, n_nonzero_coefs=2, max_iter=2, random_state=0),
        LCKSVDClassifier(6, n_nonzero_coefs=2, max_iter=2, random_state=0),
        FDDLClassifier(4, max_iter=2, random_state=0), SparseCoder(X[:8], n_nonzero_coefs=2),
        make_pipeline(NearestImputer(5), RowNormalizer(), KSVD(6, **few)),
        make_pipeline(TrainingImputer(), KSVD(6, **few)), KernelCodec(max_error=0.1),
    ]  # fmt: skip
    fitted = [(model.fit(X, y), X, y) for model in learners]
    online = MOD(8, alpha=0.1, random_state=0).partial_fit(X[:30]).partial_fit(X[30:])
    single = X.astype(np.float32)
    return [*fitted, (online, X, y), (KSVD(8, **few).fit(single), single, y)]


def _record() -> ModelRecord:
    return ModelRecord(
        name="it", columns=list("abcdef"), label="kind", left_out={"id": "a number of rows"},
        image_shape=(2, 3), fit={"seconds": 1.5, "cross_validation":
        {"mean": 0.9, "standard_error": 0.1, "folds": [0.8, 1.0]}},
        data={"file": "rows.csv", "rows": 60, "features": 6, "missing": 0, "fingerprint": "ab"},
    )  # fmt: skip


def _original(model: Any, X: Any, record: ModelRecord) -> _Original:
    with tempfile.TemporaryDirectory() as folder:
        data = save_model(model, Path(folder) / "m.skops", record).read_bytes()
    return _Original(data, _members(data), X[:20], _answers(model, X[:20]))


def _answers(model: Any, X: Any) -> list[Any]:
    """Return what a model says of rows, by every method that it has."""
    answers = []
    for name in ("transform", "predict", "decision_function", "score", "encode"):
        if hasattr(model, name) and not (name == "score" and hasattr(model, "predict")):
            try:
                answers.append(getattr(model, name)(X.copy()))  # some write where they read
            except NotImplementedError:  # some discriminants do not transform, by their solver
                continue
    return answers


def _same(answers: list[Any], expected: list[Any]) -> None:
    assert len(answers) == len(expected)
    for answer, known in zip(answers, expected, strict=True):
        if scipy.sparse.issparse(known):
            answer, known = answer.toarray(), known.toarray()
        if getattr(known, "dtype", np.dtype(object)).kind == "f":
            # NumPy multiplies arrays of another layout in another order.
            np.testing.assert_allclose(answer, known, rtol=1e-12, atol=1e-12)
        else:
            np.testing.assert_array_equal(answer, known)


def _use(model: Any, X: Any) -> str:
    """Use a rewritten model: it works, or says in words that it does not."""
    uses: list[Callable[[], Any]] = [lambda: _answers(model, X), lambda: repr(model)]
    if hasattr(model, "partial_fit") and not isinstance(model, GaussianNB):
        uses.append(lambda: model.partial_fit(X.copy()))
    # An ordinal encoder of missing and infrequent categories cannot go back, whoever made it.
    if hasattr(model, "inverse_transform") and not isinstance(model, OrdinalEncoder):
        uses.append(lambda: model.inverse_transform(model.transform(X.copy())))
    refused = 0
    for use in uses:
        try:
            use()
        except ValueError as error:  # and none that Python raises itself
            check_words(error)
            refused += 1
        except TypeError as error:
            if " must be " in str(error) and "kernelatoms" in _place(error):
                refused += 1
                continue
            # An encoder of words, as this one may have become, says so of any numbers.
            kinds = {values.dtype.kind for values in getattr(model, "categories_", [])}
            if X.dtype.kind == "O" or not kinds & set("OUS"):
                raise
            refused += 1
    return "refused at work" if refused == len(uses) else "used"


def _place(error: BaseException) -> str:
    return traceback.extract_tb(error.__traceback__)[-1].filename


def _members(data: bytes) -> Members:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _packed(members: Members) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return data.getvalue()


def _dump(tree: Any) -> bytes:
    return json.dumps(tree).encode("utf-8", "surrogatepass")


# Blind damage: digests are not made again.


def _damage_file(rng: Rng, original: _Original) -> bytes:
    return damaged(rng, original.data)


def _damage_member(rng: Rng, original: _Original) -> bytes:
    members = dict(original.members)
    name = str(rng.choice([name for name in members if name != _HEADER]))
    members[name] = damaged(rng, members[name])
    return _packed(members)


# Rewriting by somebody who knows the format: digests are right again.


def _signed(members: Members) -> bytes:
    """Pack members under a header whose digests are right."""
    try:
        header = json.loads(members[_HEADER])
        header["members"] = {
            name: hashlib.sha256(content).hexdigest()
            for name, content in members.items() if name != _HEADER
        }  # fmt: skip
        return _packed(members | {_HEADER: _dump(_stamped(header))})
    except (ValueError, TypeError, RecursionError, KeyError):
        return _packed(members)


def _stamped(header: Any) -> Any:
    """Return a header with the digest of itself."""
    said = {key: value for key, value in header.items() if key != "digest"}
    text = json.dumps(said, sort_keys=True, separators=(",", ":"))
    return said | {"digest": hashlib.sha256(text.encode()).hexdigest()}


def _rewrite_member(rng: Rng, original: _Original) -> bytes:
    members = dict(original.members)
    name = str(rng.choice(list(members)))
    members[name] = damaged(rng, members[name])
    return _packed(members) if name == _HEADER else _signed(members)


def _rewrite_schema(rng: Rng, original: _Original) -> bytes:
    members = dict(original.members)
    members[_SCHEMA] = _dump(changed_json(rng, json.loads(members[_SCHEMA])))
    return _signed(members)


def _rewrite_values(rng: Rng, original: _Original) -> bytes:
    """Give parameters and fitted numbers other values, in an otherwise whole schema."""
    members = dict(original.members)
    schema = json.loads(members[_SCHEMA])
    leaves: list[dict[str, Any]] = []
    todo = [schema]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            if node.get("__loader__") == "JsonNode":
                leaves.append(node)
            todo += list(node.values())
        elif isinstance(node, list):
            todo += node
    for _ in range(int(rng.integers(1, 4))):
        leaf = leaves[rng.integers(len(leaves))]
        leaf["content"] = json.dumps(odd_json(rng))
    members[_SCHEMA] = _dump(schema)
    return _signed(members)


def _rewrite_attributes(rng: Rng, original: _Original) -> bytes:
    """Take attributes away, exchange them, or put other objects in their place."""
    members = dict(original.members)
    schema = json.loads(members[_SCHEMA])
    nodes = [parent[key] for parent, key in places_of(schema) if _is_node(parent[key])]
    held = [
        (node["content"], node["key_types"])
        for node in nodes if node["__loader__"] == "DictNode"
    ]  # fmt: skip
    nodes = copy.deepcopy(nodes)
    for _ in range(int(rng.integers(1, 3))):
        content, kinds = held[rng.integers(len(held))]
        if not content:
            continue
        name = str(rng.choice(list(content)))
        match int(rng.integers(4)):
            case 0:
                del content[name]
                kinds["content"].pop()
            case 1:
                other = str(rng.choice(list(content)))
                content[name], content[other] = content[other], content[name]
            case 2:
                content[name] = copy.deepcopy(nodes[rng.integers(len(nodes))])
            case _:
                content[name] = {
                    "__class__": "str", "__module__": "builtins", "__loader__": "JsonNode",
                    "content": json.dumps(odd_json(rng)), "is_json": True,
                }  # fmt: skip
    members[_SCHEMA] = _dump(schema)
    used = {parent[key] for parent, key in places_of(schema) if key == "file"}
    return _signed({
        name: content for name, content in members.items()
        if name in (*used, _SCHEMA, _HEADER)
    })  # fmt: skip


def _is_node(value: Any) -> bool:
    return isinstance(value, dict) and "__loader__" in value


def _rewrite_record(rng: Rng, original: _Original) -> bytes:
    members = dict(original.members)
    header = json.loads(members[_HEADER])
    if rng.random() < 0.1:
        header = changed_json(rng, header)
    else:
        header["record"] = changed_json(rng, header["record"])
    members[_HEADER] = _dump(_stamped(header) if isinstance(header, dict) else header)
    return _packed(members)


def _rewrite_array(rng: Rng, original: _Original) -> bytes:
    """Put other arrays in place of some."""
    members = dict(original.members)
    names = [name for name in members if name.endswith(".npy")]
    for name in rng.permutation(names)[: int(rng.integers(1, 3))]:
        array = np.load(io.BytesIO(members[str(name)]), allow_pickle=False)
        members[str(name)] = promising_npy(rng, other_array(rng, array))
    return _signed(members)


def other_array(rng: Rng, array: Any) -> Any:
    """Return an array of another shape, dtype or content."""
    n = int(rng.integers(11))
    if n == 0:
        return array[..., :-1] if array.ndim else array
    if n == 1:
        return np.concatenate([array, array]) if array.ndim else array[None]
    if n == 2:
        return array.T
    if n == 3:
        return array.reshape(-1)
    if n == 4:
        return array[:0] if array.ndim else array
    if n == 5:
        kinds = ["f4", "f8", "i4", "i8", "u1", "c16", "?", "f2", "g", "U5", "S3", "M8[s]", ">f8"]
        with np.errstate(all="ignore"):
            try:
                return array.astype(rng.choice(kinds))
            except (ValueError, TypeError):
                return array
    if n == 6:
        return np.asfortranarray(array)
    if n == 7:
        return array[..., None]
    if n == 8:
        return np.zeros(rng.integers(0, 9, size=int(rng.integers(0, 4))))
    changed = array.copy()
    if not changed.size:
        return changed
    place = np.unravel_index(int(rng.integers(changed.size)), changed.shape)
    odd = NUMBERS[rng.integers(len(NUMBERS))] if changed.dtype.kind in "fiu" else WORDS[0]
    with np.errstate(all="ignore"):
        try:
            changed[place if n == 9 else ...] = odd
        except (OverflowError, ValueError):
            return -changed if changed.dtype.kind in "fi" else changed
    return changed


def promising_npy(rng: Rng, array: Any) -> bytes:
    """Return an array as a NumPy file, which now and then promises more than it holds."""
    data = io.BytesIO()
    np.save(data, array, allow_pickle=False)
    content = data.getvalue()
    if rng.random() < 0.1:  # a header that promises what does not follow
        shape = tuple(int(n) for n in rng.choice([0, 1, 3, 2**20, 2**40, 2**62], size=2))
        header = {"descr": array.dtype.str, "fortran_order": bool(rng.integers(2)), "shape": shape}
        data = io.BytesIO()
        np.lib.format.write_array_header_2_0(data, header)
        content = data.getvalue() + content[-array.nbytes :]
    return content


def _attack(rng: Rng, original: _Original) -> bytes:
    """Rewrite a file in one of the known ways to hurt its reader."""
    members = dict(original.members)
    arrays = [name for name in members if name.endswith(".npy")]
    match int(rng.integers(7)):
        case 0:  # a billion laughs: each list holds the one below it twice
            members[_SCHEMA] = _dump(_laughs(rng, int(rng.integers(5, 60))))
        case 1:  # zeros that compress a thousandfold
            members[str(rng.choice(arrays or ["0.npy"]))] = promising_npy(
                rng, np.zeros((2 ** int(rng.integers(22)), 8))
            )
        case 2:
            members[str(rng.choice([_SCHEMA, _HEADER]))] = b" " * 2 ** int(rng.integers(27)) + b"{}"
        case 3:
            members[_SCHEMA] = b"[" * int(rng.choice([900, 10**5]))
        case 4:
            members[_HEADER] = b'{"a":' * int(rng.choice([900, 10**5]))
        case 5:
            name = str(rng.choice(list(members)))
            return _twice(_signed(members), name, damaged(rng, members[name]))
        case _:
            members = {("../" + name if rng.random() < 0.5 else name): content
                       for name, content in members.items()}  # fmt: skip
            members[str(rng.choice(["/etc/passwd", "a\\b.npy", "x.npy"]))] = b"x"
    return _signed(members)


def _bomb(original: _Original, n_bytes: int) -> bytes:
    """Return a file one of whose arrays has become large, and is all zeros."""
    name = next(name for name in original.members if name.endswith(".npy"))
    data, start = io.BytesIO(), io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": (n_bytes // 64, 8)}
    np.lib.format.write_array_header_1_0(start, header)
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for other, content in original.members.items():
            if other != name:
                archive.writestr(other, content)
        with archive.open(name, "w", force_zip64=True) as member:
            member.write(start.getvalue())
            for _ in range(n_bytes >> 24):
                member.write(bytes(1 << 24))
    return data.getvalue()


def _laughs(rng: Rng, depth: int) -> Any:
    kind = str(rng.choice(["list", "tuple", "dict", "set"]))
    loader = {"list": "ListNode", "tuple": "TupleNode", "dict": "DictNode", "set": "SetNode"}[kind]

    def node(identity: int, content: Any) -> dict[str, Any]:
        return {"__class__": kind, "__module__": "builtins", "__loader__": loader,
                "content": content, "__id__": identity}  # fmt: skip

    below = node(1, {} if kind == "dict" else [])
    for identity in range(2, depth):
        again = {"__loader__": "CachedNode", "__id__": identity - 1, "__class__": kind,
                 "__module__": "builtins", "cached": True}  # fmt: skip
        parts = [below, again]
        below = node(identity, dict(zip("ab", parts, strict=True)) if kind == "dict" else parts)
    return below


def _twice(data: bytes, name: str, content: bytes) -> bytes:
    """Add a second member of the same name."""
    file = io.BytesIO(data)
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr(name, content)
    return file.getvalue()


def _nested(rng: Rng, original: _Original) -> bytes:
    members = dict(original.members)
    header = json.loads(members[_HEADER])
    key = str(rng.choice(["columns", "data", "fit", "left_out", "made_with"]))
    header["record"][key] = odd_nest(int(rng.integers(1, 200)))
    members[_HEADER] = _dump(_stamped(header) if isinstance(header, dict) else header)
    return _packed(members)


#: Changes, and whether whoever made them knows the format.
_CHANGES: list[tuple[Callable[[Rng, _Original], bytes], bool]] = [
    (_damage_file, False),
    (_damage_member, False),
    (_rewrite_member, True),
    (_rewrite_schema, True),
    (_rewrite_schema, True),
    (_rewrite_values, True),
    (_rewrite_values, True),
    *[(_rewrite_attributes, True)] * 6,
    (_rewrite_record, True),
    (_rewrite_array, True),
    (_rewrite_array, True),
    (_attack, True),
    (_nested, True),
]

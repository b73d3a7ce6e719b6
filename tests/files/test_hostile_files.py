"""Model files made by somebody who means harm: refused in words, within time and memory."""

import hashlib
import io
import json
import resource
import struct
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import scipy.sparse
import skops.io
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer, PowerTransformer, StandardScaler
from sklearn.svm import SVC

from forged_models import forge, members_of, with_digest, write
from kernelatoms import KSVD, MOD, KernelLinearizer, limits
from kernelatoms.files import ModelFileError, ModelRecord, load_model, read_record, save_model
from kernelatoms.files.models.model_file import inspect_model

X = np.random.default_rng(0).normal(size=(60, 4))
Y = np.where(X[:, 0] > 0, "a", "b")


@pytest.fixture
def path(tmp_path):
    """A model file."""
    return save_model(MOD(6, random_state=np.random.RandomState(0)).fit(X), tmp_path / "m.skops")


def refused(path, words):
    with pytest.raises(ModelFileError, match=words):
        load_model(path)


# Digests


def test_a_changed_member_is_noticed(path):
    members = members_of(path)
    header = json.loads(members["kernelatoms.json"])
    assert header["format_version"] == 1
    for name, digest in header["members"].items():
        assert hashlib.sha256(members[name]).hexdigest() == digest
    for name, content in members.items():
        if name == "kernelatoms.json":
            continue
        changed = bytearray(content)
        changed[-1] ^= 1
        with zipfile.ZipFile(path, "w") as file:
            for other in members:
                file.writestr(other, bytes(changed) if other == name else members[other])
        refused(path, f"its member '{name}' was changed after it was written")


def test_a_missing_or_further_member_is_noticed(path):
    members = members_of(path)
    first = next(name for name in members if name.endswith(".npy"))
    for changed in ({**members, "more.npy": b"1"}, {n: members[n] for n in members if n != first}):
        with zipfile.ZipFile(path, "w") as file:
            for name, content in changed.items():
                file.writestr(name, content)
        refused(path, "was changed after it was written")


def test_a_changed_record_is_noticed(path):
    members = members_of(path)
    header = json.loads(members["kernelatoms.json"])
    header["record"]["name"] = "another"
    members["kernelatoms.json"] = json.dumps(header)
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
    with pytest.raises(ModelFileError, match=r"kernelatoms\.json was changed after it was written"):
        read_record(path)


def test_headers_without_digests_are_refused(path):
    members = members_of(path)
    whole = json.loads(members["kernelatoms.json"])
    bare = {name: whole[name] for name in ("format_version", "record")}
    others = ({}, {"members": None}, {"members": []}, {"members": {}}, {"members": "none"})
    for header in (
        json.dumps(bare),
        json.dumps({**bare, "members": whole["members"]}),
        json.dumps({**bare, "members": whole["members"], "digest": None}),
        *(with_digest({**bare, **other}) for other in others),
    ):
        with zipfile.ZipFile(path, "w") as file:
            for name, content in {**members, "kernelatoms.json": header}.items():
                file.writestr(name, content)
        refused(path, "is damaged: ")


def test_files_may_not_hold_what_nothing_refers_to(path):
    members = members_of(path)
    write(path, {**members, "more.npy": b"1"})
    refused(path, r"'more\.npy' belongs to no object")
    del members[next(name for name in members if name.endswith(".npy"))]
    write(path, members)
    refused(path, r"\.npy' is missing")


# Descriptions of objects


def node(content, number=None, loader="ListNode", kind="list"):
    named = {"__class__": kind, "__module__": "builtins", "__loader__": loader}
    return {**named, "content": content} | ({} if number is None else {"__id__": number})


def write_schema(path, schema):
    write(path, {"schema.json": json.dumps({**schema, "protocol": 2, "_skops_version": "0.13"})})


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("stub", ["bare", "cached", "empty"])
def test_nested_lists_that_refer_to_each_other_do_not_hang(tmp_path, stub, order):
    """2 to the power of 60 lists in some kilobytes, for whoever follows all references."""
    inner = node([], 1)
    for number in range(2, 62):
        reference = {
            "bare": {"__id__": inner["__id__"]},
            "cached": node(None, inner["__id__"], "CachedNode"),
            "empty": node([], inner["__id__"]),
        }[stub]
        inner = node([inner, reference][::order], number)
    write_schema(tmp_path / "m.skops", inner)
    refused(tmp_path / "m.skops", "refers to an object|one object in two ways")


def test_circles_are_refused(tmp_path):
    write_schema(tmp_path / "m.skops", node([node([], 1)], 1))
    refused(tmp_path / "m.skops", "one object in two ways")


@pytest.mark.parametrize("number", [True, 1.0, "1", [1], {"a": 1}])
def test_numbers_of_objects_are_whole(tmp_path, number):
    write_schema(tmp_path / "m.skops", node([node([]) | {"__id__": number}], 1))
    refused(tmp_path / "m.skops", "numbers an object|refers to an object")


def test_objects_that_are_met_twice_come_back_as_one(tmp_path):
    model = MOD(6, random_state=np.random.RandomState(0), warm_start=True).fit(X)
    again, _ = load_model(save_model(model, tmp_path / "m.skops"))
    assert model.state_.random_state is model.random_state
    assert again.state_.random_state is again.random_state
    assert (again.state_.best is again.components_) == (model.state_.best is model.components_)


def test_deep_descriptions_are_refused(tmp_path):
    deep = node([])
    for _ in range(400):
        deep = node([deep])
    write_schema(tmp_path / "m.skops", deep)
    refused(tmp_path / "m.skops", "nested more than 200 levels deep")
    for text in ("[" * 200_000, '{"a":' * 200_000):
        write(tmp_path / "m.skops", {"schema.json": text})
        refused(tmp_path / "m.skops", "damaged")


def test_long_descriptions_are_refused(tmp_path):
    write_schema(tmp_path / "m.skops", node([node("1", loader="JsonNode", kind="str")] * 100_001))
    refused(tmp_path / "m.skops", "more than 100,000")
    write_schema(tmp_path / "m.skops", node([[]] * 400_001))
    refused(tmp_path / "m.skops", "more objects than a model has")
    write(tmp_path / "m.skops", {"schema.json": " " * (16 << 20) + "{}"})
    refused(tmp_path / "m.skops", r"'schema\.json' is of 16,777,218 bytes")


@pytest.mark.parametrize("text", ["", "[]", "3", "null", "{}", "nonsense", '{"__loader__": 3}'])
def test_descriptions_of_nothing(tmp_path, text):
    write(tmp_path / "m.skops", {"schema.json": text})
    refused(tmp_path / "m.skops", "damaged")


def of_numpy(kind, file, number, loader="NdArrayNode", what="numpy"):
    named = {"__class__": kind, "__module__": "numpy", "__loader__": loader, "__id__": number}
    return {**named, "type": what, "file": file}


def saved(array):
    data = io.BytesIO()
    np.save(data, array)
    return data.getvalue()


def described(model, **attributes):
    """Return the members of a model, of which attributes are described in another way."""
    members = members_of(io.BytesIO(skops.io.dumps(model)))
    schema = json.loads(members["schema.json"])
    schema["content"]["content"] |= attributes
    return members | {"schema.json": json.dumps(schema)}


@pytest.mark.parametrize("numbers", [(1, 2, 3), (0, 0), (None, None), (None,), (0,)])
def test_no_array_is_read_twice(tmp_path, numbers):
    """A thousand objects that are one member of the archive, each with memory of its own."""
    arrays = node([of_numpy("ndarray", "a.npy", number) for number in numbers], 9)
    members = described(StandardScaler().fit(X), copy=arrays) | {"a.npy": saved(np.zeros(9))}
    write(tmp_path / "m.skops", members)
    refused(tmp_path / "m.skops", r"'a\.npy' is not that of one object")


def test_arrays_that_are_met_often_count_so_often(tmp_path, monkeypatch):
    """Each time that an array is met it is looked at, however short the reference."""
    monkeypatch.setattr("kernelatoms.files.models.archive.MODEL_SIZE", 1 << 10)
    members = described(StandardScaler().fit(X)) | {"a.npy": saved(np.zeros(1 << 16))}
    for n, words in ((2, "copy"), (20, "again and again")):
        arrays = node([of_numpy("ndarray", "a.npy", 7)] * n, 9)
        write(tmp_path / "m.skops", described(StandardScaler().fit(X), copy=arrays) | {
            "a.npy": members["a.npy"]
        })  # fmt: skip
        refused(tmp_path / "m.skops", words)


@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize("what", ["text", "array"])
def test_short_references_to_long_objects_are_refused(tmp_path, what, within):
    files = {"a.npy": saved(np.zeros(999)), "b.npy": saved(np.zeros(1))}
    if what == "text":
        long, short = (node(text, 7, "JsonNode", "str") for text in ("[1, 2, 3, 4]", "1"))
        files = {}
    else:
        long, short = of_numpy("ndarray", "a.npy", 7), of_numpy("ndarray", "b.npy", 7)
    if within:
        long, short = (node([{**part, "__id__": i}], 7) for i, part in enumerate((long, short), 1))
    members = described(StandardScaler().fit(X), copy=node([long, short], 9))
    write(tmp_path / "m.skops", members | files)
    refused(tmp_path / "m.skops", "one object in two ways")


def test_names_of_allowed_types_do_not_stand_for_others(tmp_path):
    """Builders that unpack, call or put together what the file says, under a name of trust."""
    sparse = io.BytesIO()
    scipy.sparse.save_npz(sparse, scipy.sparse.csr_matrix(np.zeros((3, 3))))
    zeros = of_numpy("dtype", "a.npz", 7, "SparseMatrixNode", "scipy")
    model = KSVD(4).fit(X)
    write(tmp_path / "m.skops", described(model, dict_init=zeros) | {"a.npz": sparse.getvalue()})
    refused(tmp_path / "m.skops", r"numpy\.dtype as if it were another object, by SparseMatrixNode")
    part = {"func": {"__class__": "add", "__module__": "numpy", "__loader__": "FunctionNode"}}
    for name, text in (("args", "[1]"), ("kwds", "{}"), ("namespace", "null")):
        part[name] = node(text, loader="JsonNode", kind="str")
    for content, loader, owner in (
        (part, "PartialNode", np.dtype),
        (node("[null]", loader="JsonNode", kind="str"), "ConstructorFromReduceNode", KSVD),
        (None, "ObjectNode", np.random.RandomState),
        (None, "TypeNode", KSVD),
    ):
        named = {"__class__": owner.__name__, "__module__": owner.__module__}
        other = {**named, "__loader__": loader, "content": content}
        write(tmp_path / "m.skops", described(model, random_state=other))
        refused(tmp_path / "m.skops", f"as if it were another object, by {loader}")


def test_memory_as_large_as_a_number_says_must_be_trusted(tmp_path):
    zeros = of_numpy("void", "a.npy", 7)
    write(tmp_path / "m.skops", described(StandardScaler().fit(X), copy=zeros) | {
        "a.npy": saved(np.array(2_000_000_000))
    })  # fmt: skip
    refused(tmp_path / "m.skops", r"numpy\.void")


def test_estimators_nested_deeply_are_refused(tmp_path):
    """scikit-learn asks the only step of a pipeline three times, and so does each step in it."""
    model = StandardScaler().fit(X)
    for _ in range(7):
        model = make_pipeline(model)
    again, _ = load_model(save_model(model, tmp_path / "m.skops"))
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    with pytest.raises(TypeError, match="more than 8 levels deep"):
        save_model(make_pipeline(model), tmp_path / "m.skops")
    for _ in range(12):
        model = make_pipeline(model)
    refused(forge(model, tmp_path / "m.skops"), "nests estimators more than 8 levels deep")


# Archives


def test_two_members_of_one_name(path):
    members = members_of(path)
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
        with pytest.warns(UserWarning, match="Duplicate"):
            file.writestr("schema.json", b"{}")
    refused(path, r"two of its members are called 'schema\.json'")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_are_refused(path, method):
    write(path, members_of(path), method=method)
    refused(path, "compressed in an unknown way")


def test_encrypted_members_are_refused(path):
    data = bytearray(path.read_bytes())
    at = data.rindex(b"PK\x01\x02")
    data[at + 8] |= 1
    path.write_bytes(data)
    refused(path, "is encrypted")


def test_bombs_are_refused_before_they_unpack(path, monkeypatch):
    """A few megabytes of zeros, packed, would be gigabytes; here, scaled down."""
    monkeypatch.setattr(limits, "MODEL_SIZE", 1 << 20)
    members = members_of(path)
    name = next(name for name in members if name.endswith(".npy"))
    members[name] = bytes(4 << 20)
    write(path, members)
    refused(path, r"would become 4\.\d MiB or more, and 1\.0 MiB are allowed; .* max_size")
    with pytest.raises(ModelFileError, match=r"magic|is not a"):
        load_model(path, max_size=8 << 20)
    write(path, members, method=zipfile.ZIP_STORED)
    refused(path, "is not a|magic")


def test_models_that_shrink_too_much_are_written_as_they_are(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "MODEL_SIZE", 1 << 12)
    rows = np.zeros((500, 50))
    rows[0, 0] = 1
    model = KernelLinearizer("linear", sampling=rows).fit(X=rows)
    path = save_model(model, tmp_path / "m.skops")
    again, _ = load_model(path)
    np.testing.assert_array_equal(again.landmarks_, model.landmarks_)
    assert path.stat().st_size > rows.nbytes


def test_a_member_larger_than_it_declares_unpacks_no_further(tmp_path):
    """zipfile, asked for a whole member, unpacks first and looks at the size afterwards."""
    path = tmp_path / "m.skops"
    write(path, {"schema.json": " " * (64 << 20)})
    data = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = data.index(mark)
        data[at + offset : at + offset + 4] = struct.pack("<I", 10)
    path.write_bytes(data)
    code = (
        "import sys, resource; from kernelatoms import load_model; import skops.io\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try:\n    load_model(sys.argv[1])\nexcept ValueError as error:\n    print(error)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    words, grown = done.stdout.strip().rsplit("\n", 1)
    assert "damaged" in words
    assert int(grown) < 32 << 10  # KiB


@pytest.mark.slow
def test_large_files_take_no_more_than_a_gibibyte(tmp_path):
    """As declared, a model of 200 MiB: it is refused, having been held a few times at most."""
    path = tmp_path / "m.skops"
    save_model(KSVD(6).fit(X), path)
    members = members_of(path)
    name = next(name for name in members if name.endswith(".npy"))
    data = io.BytesIO()
    np.save(data, np.zeros((25 << 20, 1)))
    members[name] = data.getvalue()
    write(path, members)
    limit = 1400 << 20  # of which the interpreter and its libraries take a third
    code = (
        "import sys, resource; from kernelatoms import load_model; import skops.io\n"
        "try:\n    load_model(sys.argv[1])\nexcept ValueError as error:\n    print(error)\n"
        f"assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < {limit >> 10}"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    assert "damaged: KSVD." in done.stdout, done.stderr
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > 0


# Arrays


def npy(header, body=b""):
    text = (header + "\n").encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + body


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (npy("{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000,), }"), "promises"),
        (npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }", bytes(24)), "promises"),
        (
            npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -8), }", bytes(64)),
            "promises",
        ),
        (npy("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 9000000), }"), "promises"),
        (
            npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", b"(i1\n."),
            "not of numbers",
        ),
        (
            npy("{'descr': '|V0', 'fortran_order': False, 'shape': (9000000000,), }"),
            "not of numbers",
        ),
        (npy("__import__('os').abort()"), "damaged"),
        (b"\x93NUMPY\x09\x00", "unknown version|damaged"),
        (b"", "damaged"),
    ],
)
def test_arrays_are_as_large_as_they_declare(path, content, words):
    members = members_of(path)
    name = next(name for name in members if name.endswith(".npy"))
    write(path, {**members, name: content})
    refused(path, words)


# Types of scikit-learn


@pytest.mark.parametrize(
    "step",
    [SimpleImputer(), StandardScaler(), MinMaxScaler(), PowerTransformer(), Normalizer(), PCA(2),
     VarianceThreshold(), KernelLinearizer()],
    ids=lambda step: type(step).__name__,
)  # fmt: skip
@pytest.mark.parametrize("last", [LogisticRegression(), Ridge()], ids=lambda s: type(s).__name__)
def test_plain_estimators_need_no_trust(step, last, tmp_path):
    model = make_pipeline(step, last).fit(X, Y if isinstance(last, LogisticRegression) else X[:, 0])
    path = save_model(model, tmp_path / "m.skops")
    assert inspect_model(path)[2] == []
    again, _ = load_model(path)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize(
    "last",
    [RandomForestClassifier(2), KNeighborsClassifier(), SVC(), SGDClassifier()],
    ids=lambda last: type(last).__name__,
)
def test_estimators_of_compiled_loops_must_be_named(last, tmp_path):
    model = make_pipeline(StandardScaler(), last).fit(X, Y)
    path = save_model(model, tmp_path / "m.skops")
    name = f"{type(last).__module__}.{type(last).__name__}"
    with pytest.raises(ModelFileError, match="unchecked numbers to compiled code") as caught:
        load_model(path)
    assert name in str(caught.value)
    assert name in inspect_model(path)[2]
    again, _ = load_model(path, trusted=inspect_model(path)[2])
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_clusters_among_the_attributes_must_be_named(tmp_path):
    model = KSVD(4).fit(X)
    model.random_state = KMeans(2).fit(X)
    forge(model, tmp_path / "m.skops")
    refused(tmp_path / "m.skops", "KMeans")


@pytest.mark.parametrize("content", [np.random.default_rng(0), np.ma.masked_array([1.0])])
def test_generators_and_masked_arrays_are_no_attributes(content, tmp_path):
    model = KSVD(4).fit(X)
    model.components_ = model.random_state = content
    forge(model, tmp_path / "m.skops")
    refused(tmp_path / "m.skops", "Generator|must be an array|cannot be used to seed")


# Records

GOOD = {"name": "it", "columns": list("abcd"), "image_shape": [2, 2], "label": "y"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", 3), ("name", None), ("name", "\ud800"),
        ("columns", "abcd"), ("columns", ["a", "b", "c", 4]), ("columns", {}), ("columns", 4),
        ("columns", ["a", "b", "c", "a"]), ("columns", ["a", "b"]),
        ("label", 3), ("label", ["y"]),
        ("left_out", ["a"]), ("left_out", {"a": 1}), ("left_out", None),
        ("image_shape", [2]), ("image_shape", [2, 0]), ("image_shape", [2.0, 2]),
        ("image_shape", "22"), ("image_shape", [True, 4]), ("image_shape", [3, 3]),
        ("data", None), ("data", []), ("data", {"rows": "many"}), ("data", {"rows": -1}),
        ("data", {"file": 3}), ("data", {"missing": 1.5}), ("data", {"fingerprint": 1}),
        ("fit", 3), ("fit", {"seconds": "long"}), ("fit", {"seconds": -1}),
        ("fit", {"seconds": float("nan")}), ("fit", {"warnings": "none"}),
        ("fit", {"classes": [1]}), ("fit", {"energy_kept": "all"}),
        ("fit", {"cross_validation": 1}), ("fit", {"cross_validation": {}}),
        ("fit", {"cross_validation": {"mean": 1, "standard_error": 0, "folds": 3}}),
        ("fit", {"cross_validation": {"mean": "1", "standard_error": 0, "folds": []}}),
        ("made_with", {"numpy": 2}), ("made_with", "numpy"),
    ],
)  # fmt: skip
def test_fields_of_records_have_types(tmp_path, path, field, value):
    members = members_of(path)
    write(path, members, record=GOOD)
    load_model(path)
    write(path, members, record={**GOOD, field: value})
    refused(path, rf"damaged: record: {field}")
    model = MOD(4, max_iter=1).fit(X)

    def write_record():
        save_model(model, tmp_path / "n.skops", ModelRecord(**{**GOOD, field: value}))

    with pytest.raises((TypeError, ValueError), match=rf"record: {field}"):
        write_record()


def test_further_entries_of_a_record_stay(tmp_path):
    record = ModelRecord(
        fit={"mine": [1, {"a": None}], "seconds": np.float64(2)}, data={"who": "I"}
    )
    _, read = load_model(save_model(KSVD(4).fit(X), tmp_path / "m.skops", record))
    assert read == record
    with pytest.raises(TypeError, match="record: fit must be a dictionary of texts to plain"):
        ModelRecord(fit={"mine": object()})


# Whatever goes wrong


def test_every_error_is_a_model_file_error(path):
    """Bytes, members and values at random: nothing else is raised, whatever is hit."""
    rng = np.random.default_rng(0)
    whole, members = path.read_bytes(), members_of(path)
    schema = members["schema.json"].decode()
    for i in range(300):
        if i % 2:
            broken = bytearray(whole)
            for place in rng.integers(0, len(whole), 4):
                broken[place] = rng.integers(256)
            path.write_bytes(bytes(broken))
        else:
            start, length = rng.integers(len(schema)), rng.integers(1, 20)
            piece = schema[(other := rng.integers(len(schema))) : other + length]
            text = schema[:start] + piece + schema[start + rng.integers(20) :]
            write(path, {**members, "schema.json": text})
        try:
            model, _ = load_model(path)
        except ModelFileError:
            continue
        assert model.transform(X).shape == (60, 6)


def test_what_the_system_says_of_a_file_stays(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no model file"):
        load_model(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no model file"):
        load_model(tmp_path / "none")

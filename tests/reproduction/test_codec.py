"""The codec's study: rivals are searched fairly, every byte counts, claims can fail."""

import json

import numpy as np
import pytest

from reproduction.__main__ import main
from reproduction.codec import claims, factors, literal, methods, pictures, sizes
from reproduction.codec.data import Table, load_table
from reproduction.codec.methods import OURS, PCA, ROUNDED, ROUNDED_XZ, SVD, SZ3, ZFP
from reproduction.codec.packing import integer_bytes, mask_bytes, small, squeezed, zstd_bytes
from reproduction.codec.ratios import METHODS, OURS_MEAN, PACKED, PAPER, WHOLE
from reproduction.codec.scalings import scalings
from reproduction.codec.search import (
    HEADER,
    Prepared,
    at_bound,
    prepare,
    size_near,
    smallest_stream,
)
from reproduction.codec.streams import streams
from reproduction.codec.views import views
from reproduction.figure import Curves
from reproduction.figures import FIGURES
from reproduction.page import figure_picture, figure_table
from reproduction.store import key_of
from reproduction.study import NotAvailable, Size, Study

DATA = ("planetlab", "traffic", "pm25", "syn360")


def walk(rng, shape):
    return (50 + np.cumsum(rng.standard_normal(shape), axis=0)).astype(np.float32)


@pytest.fixture
def symmetric(rng):
    one = rng.uniform(20, 400, (12, 12)) * rng.uniform(1, 1.05, (5, 12, 12))
    slices = np.triu(one, 1)
    return Table("planetlab", (slices + slices.transpose(0, 2, 1)).astype(np.float32))


@pytest.fixture
def traffic(rng):
    return Table("traffic", walk(rng, (2 * 144, 6)))


@pytest.fixture
def gaps(rng):
    values = np.rint(walk(rng, (100, 5)))
    values[rng.random(values.shape) < 0.2] = np.nan
    values[7] = np.nan
    return Table("pm25", values)


@pytest.fixture
def tables(symmetric, traffic, gaps, rng):
    return [symmetric, traffic, gaps, Table("syn360", rng.standard_normal((40, 9)).astype("f4"))]


# Tables -------------------------------------------------------------------------------------------


def test_row_errors_are_relative_and_of_known_values():
    values = np.array([[3, 4], [np.nan, 2], [np.nan, np.nan], [0, 0]], np.float32)
    table = Table("x", values)
    decoded = np.array([[3, 4.5], [9, 2.5], [1, 1], [0, 0]], np.float32)
    np.testing.assert_allclose(table.row_errors(decoded), [0.1, 0.25, 0])
    decoded[3, 0] = 1e-3
    assert table.row_errors(decoded)[2] == np.inf


def test_gaps_are_bridged_by_lines():
    values = np.array([[1.0], [np.nan], [3.0], [np.nan]])
    np.testing.assert_array_equal(Table("x", values).bridged.ravel(), [1, 2, 3, 3])


def test_tables_know_what_they_are(tables):
    symmetric, traffic, gaps, _ = tables
    assert symmetric.symmetric
    assert not traffic.symmetric
    assert gaps.integers
    assert not traffic.integers
    assert not gaps.complete
    assert symmetric.gap_bytes == 0 < gaps.gap_bytes


def test_synthetic_table_needs_no_file():
    table = load_table("syn360", None)
    assert table.values.shape == (1500, 360)
    assert table.values.dtype == np.float32
    with pytest.raises(ValueError, match="no such data set"):
        load_table("usps", None)


# Orders and scalings ------------------------------------------------------------------------------


def test_every_order_comes_back(tables):
    for table in tables:
        for view in views(table):
            back = view.restore(np.ascontiguousarray(view.arrange(table.bridged)))
            np.testing.assert_array_equal(back, table.bridged, err_msg=view.name)


def test_triangles_have_each_entry_once(symmetric):
    sizes = [v.arrange(symmetric.values).size for v in views(symmetric) if "triangle" in v.name]
    assert sizes == [5 * 66] * 4


def test_scaled_values_come_back_and_rows_have_unit_norm(tables):
    for table in tables:
        for scaling in scalings(table, 0.05):
            prepared = prepare(table, views(table)[0], scaling)
            assert prepared.errors(prepared.array).max() < 1e-6, scaling.name
        finest = scalings(table, 0.05)[-1]
        scaled = np.nan_to_num(table.values) / finest.factor()
        norms = np.linalg.norm(scaled, axis=-1)
        if table.symmetric or table.integers:
            assert norms.max() < 2
        else:
            np.testing.assert_allclose(norms, 1, rtol=0.02)


def test_products_of_norms_leave_all_rows_the_same_error(symmetric):
    product = next(s for s in scalings(symmetric, 0.05) if s.name.startswith("rows") and "1/32" in
                   s.name and "product" in s.name)  # fmt: skip
    missed = np.sqrt(np.mean(np.square(product.factor()), axis=-1)) / symmetric.row_norms
    np.testing.assert_allclose(missed, missed.mean(), rtol=0.03)


def test_small_norms_of_whole_numbers_are_raised(gaps):
    raised = [s for s in scalings(gaps, 0.001) if "or more" in s.name]
    assert raised
    assert all(len(np.unique(s.norms)) == 1 for s in raised)
    assert min(s.n_bytes for s in raised) < 30


def test_integers_are_packed_and_counted(rng):
    codes = rng.integers(-3, 4, 500)
    assert small(codes).dtype == np.int8
    assert small(1000 * codes).dtype == np.int16
    assert small(100_000 * codes).dtype == np.int32
    entropy = 500 * np.log2(7) / 8
    assert entropy < integer_bytes(codes) < 1.5 * entropy
    assert integer_bytes(np.cumsum(codes)) < 1.6 * entropy
    assert zstd_bytes(np.zeros(10_000)) < 40
    known = np.ones((64, 8), bool)
    assert mask_bytes(known) == 0
    known[3:5, 2] = False
    assert 0 < mask_bytes(known) < 60
    assert squeezed(b"") > 0


# Rivals -------------------------------------------------------------------------------------------


def test_rounding_is_searched_to_the_bound(tables):
    for table in tables:
        for bound in (0.01, 0.1):
            found = smallest_stream(ROUNDED, table, bound)
            assert 0 < found.largest <= bound
            assert found.n_bytes > HEADER + table.gap_bytes
            if not table.integers:
                assert found.largest > 0.8 * bound


def test_larger_errors_take_fewer_bytes(traffic):
    found = [smallest_stream(ROUNDED_XZ, traffic, bound) for bound in (0.005, 0.02, 0.1)]
    assert found[0].n_bytes > found[1].n_bytes > found[2].n_bytes


def test_the_winner_is_no_larger_than_any_setting_tried_by_hand(traffic):
    found = smallest_stream(ROUNDED, traffic, 0.02)
    for view in views(traffic)[:2]:
        for scaling in (scalings(traffic, 0.02)[0], scalings(traffic, 0.02)[-1]):
            prepared = prepare(traffic, view, scaling)
            for stream in streams(ROUNDED, 2):
                size = size_near(prepared, stream.code, 0.02, None)
                by_hand = at_bound(prepared, stream, 0.02, size)
                assert found.n_bytes <= 1.01 * by_hand.n_bytes


def test_whole_numbers_are_exact_after_rounding(gaps):
    prepared = prepare(gaps, views(gaps)[0], scalings(gaps, 0.01)[0])
    assert isinstance(prepared, Prepared)
    assert prepared.errors(prepared.array + np.float32(0.4)).max() == 0


def test_a_bound_that_nobody_can_hold_finds_nothing(traffic):
    prepared = prepare(traffic, views(traffic)[0], scalings(traffic, 0.01)[0])
    stream = streams(ROUNDED, 2)[0]._replace(code=lambda array, size: (1, array + 50))
    assert at_bound(prepared, stream, 0.01, 1.0) is None


def test_components_and_singular_vectors_hold_the_bound(rng):
    low_rank = rng.standard_normal((60, 3)) @ rng.standard_normal((3, 12)) + 10
    table = Table("syn360", low_rank.astype(np.float32))
    for smallest in (factors.smallest_pca, factors.smallest_svd):
        found = smallest(table, 0.02)
        assert found.largest <= 0.02
        assert found.n_bytes < 0.5 * table.values.nbytes
    assert "rank 3" in factors.smallest_pca(table, 0.02).setting


@pytest.mark.parametrize("shape", [(40, 7), (7, 40)])
@pytest.mark.parametrize("centred", [True, False])
def test_factors_give_the_matrix_back(rng, shape, centred):
    matrix = rng.standard_normal(shape) + 3
    found = factors.factor(matrix, centred)
    np.testing.assert_allclose(found.left @ found.right + found.middle, matrix, atol=1e-8)
    n_fine, fine = factors.pca_file(found, 7, 1e-3, level=9)
    n_coarse, coarse = factors.pca_file(found, 7, 0.5, level=9)
    n_guessed, again = factors.pca_file(found, 7, 1e-3)
    np.testing.assert_array_equal(again, fine)
    assert 0.5 * n_fine < n_guessed < 2 * n_fine
    assert np.abs(fine - matrix).max() < 3e-3 < np.abs(coarse - matrix).max() < 2
    assert n_coarse < n_fine
    codes, eight = factors.svd_file(found, 7, 8)
    assert [np.abs(side).max() for side in codes] == [127, 127]
    codes, sixteen = factors.svd_file(found, 7, 16)
    assert [np.abs(side).max() for side in codes] == [32767, 32767]
    assert np.abs(sixteen - matrix).max() < 1e-3 < np.abs(eight - matrix).max() < 0.5


@pytest.mark.parametrize(("rival", "package"), [
    (SZ3, "pysz"), (ZFP, "zfpy"), ("SPERR", "hdf5plugin"), ("SZ2", "hdf5plugin"),
])  # fmt: skip
def test_compressors_hold_the_bound_where_they_are_installed(rival, package, traffic):
    pytest.importorskip(package)
    if package == "hdf5plugin":
        pytest.importorskip("h5py")
    measures = methods.run_rival(rival, traffic, 0.05)
    assert measures["met"] == 1
    assert 0.02 < measures["largest"] <= 0.05
    assert measures["bytes"] < traffic.values.nbytes
    assert measures["setting"]


def test_sz3_takes_its_settings_from_the_file(traffic):
    pytest.importorskip("pysz")
    prepared = prepare(traffic, views(traffic)[0], scalings(traffic, 0.05)[0])
    coded = {s.name: s.code(prepared.array, 0.5) for s in streams(SZ3, 2)}
    assert len({n_bytes for n_bytes, _ in coded.values()}) > 4
    for name, (_, decoded) in coded.items():
        assert np.abs(decoded - prepared.array).max() <= 0.5 * (1 + 1e-5), name


# A.7 ----------------------------------------------------------------------------------------------


def test_bytes_of_parts():
    parts = {"index": np.arange(9, dtype=np.int32), "value": np.zeros(1000, np.float32)}
    raw, packed = literal.part_bytes(parts)
    assert raw == {"index": 36, "value": 4000}
    assert packed["value"] < 100


def test_the_literal_file_counts_everything(rng):
    rows = np.abs(rng.standard_normal((80, 3)) @ rng.standard_normal((3, 8))) + 1
    table = Table("traffic", rows.astype(np.float32))
    file = literal.stored_literally(table, 1.0, 0.01)
    assert file.raw["dictionary"] == 8 * 8 * 4
    assert file.raw["norms"] == 80 * 4
    assert file.raw["index"] == file.raw["value"] == 4 * file.n_nonzero > 0
    assert file.rows.shape == table.values.shape
    assert table.row_errors(file.rows).mean() < 0.5


# Runs ---------------------------------------------------------------------------------------------


def test_ours_and_rivals_measure_the_same_things(traffic):
    ours = methods.run_ours("lags", traffic, 0.05)
    theirs = methods.run_rival(PCA, traffic, 0.05)
    common = {"met", "bytes", "bits", "largest", "mean", "setting", "seconds"}
    assert common <= set(ours)
    assert common <= set(theirs)
    for measures in (ours, theirs):
        assert measures["largest"] <= 0.05
        assert measures["bits"] == 8 * measures["bytes"] / traffic.values.size


def test_a_model_that_does_not_fit_says_so(traffic, monkeypatch):
    class Unfit:
        def __init__(self, **_):
            pass

        def fit(self, X):
            raise ValueError("not for these rows")

    monkeypatch.setattr(methods, "KernelCodec", Unfit)
    assert methods.run_ours("lags", traffic, 0.05) == {"met": 0.0, "setting": "not for these rows"}


def test_missing_packages_leave_no_record_and_say_so(tmp_path, traffic, monkeypatch):
    monkeypatch.setattr(methods, "find_spec", lambda name: None)
    assert methods.absent() == dict.fromkeys((SZ3, ZFP, "SPERR", "SZ2"), "not installed")
    with pytest.raises(NotAvailable, match="bench"):
        methods.run_rival(SZ3, traffic, 0.05)
    monkeypatch.setattr(sizes, "load_table", lambda data, home: traffic)
    settings = [{"data": "traffic", "method": m, "x": 0.05} for m in (SZ3, ROUNDED)]
    size = Size(settings, 1, "")
    study = Study("codec/traffic", "none", size, size, sizes.measure_size)
    assert len(list(study.run(tmp_path, size))) == 2
    curves = FIGURES["codec/traffic"].curves(tmp_path, size)
    assert curves.methods == [ROUNDED]
    rows = figure_table(FIGURES["codec/traffic"], curves).rows
    assert [SZ3, "not installed"] in rows
    assert len(study.missing(tmp_path, size)) == 1


def test_settings_come_back_from_their_records_and_quick_is_a_part():
    for data in DATA:
        study = sizes.STUDIES[data]
        keys = [key_of(setting) for setting in study.full.settings]
        assert len(set(keys)) == len(keys)
        assert {key_of(s) for s in study.quick.settings} <= set(keys)
        assert all(json.loads(key_of(s)) == s for s in study.full.settings)


def test_the_study_runs_on_the_command_line(tmp_path, monkeypatch, traffic):
    table = Table("traffic", traffic.values[:144, :4])
    monkeypatch.setattr(sizes, "load_table", lambda data, home: table)
    output = tmp_path / "out"
    assert main(["codec/traffic", "-o", str(output)]) in (0, None)
    records = [json.loads(line) for line in (output / "codec/traffic.jsonl").open()]
    assert OURS in {record["setting"]["method"] for record in records}
    assert "bits a value" in (output / "codec.html").read_text()
    drawn = pictures.rate_pictures("traffic", output)
    assert "KernelCodec at 5%" in drawn[0].caption
    assert pictures.rate_pictures("pm25", output) == []


# Claims -------------------------------------------------------------------------------------------


def holds(found):
    return [claim.holds for claim in found]


def test_claims_on_bytes_can_fail():
    values = {(OURS, 0.01): [60.0], (SZ3, 0.01): [100.0], (PCA, 0.01): [200.0]}
    for data, expected in (("planetlab", True), ("traffic", True)):
        assert holds(claims.claims_bytes(Curves(values), data)) == [expected]
    values[OURS, 0.01] = [80.0]
    assert holds(claims.claims_bytes(Curves(values), "planetlab")) == [False]
    assert holds(claims.claims_bytes(Curves(values), "traffic")) == [True]
    values[ROUNDED_XZ, 0.01] = [70.0]
    assert holds(claims.claims_bytes(Curves(values), "traffic")) == [True, False]
    beside = claims.beside_best(Curves(values))
    assert beside.mean(OURS, 0.01) == 0.8
    assert beside.mean(ROUNDED_XZ, 0.01) == 0.7
    assert claims.claims_bytes(Curves({}), "pm25") == []


def test_claims_on_models_can_fail():
    values = {(OURS, 0.01): [60.0], (f"{OURS}, lags", 0.01): [59.0]}
    assert holds(claims.claims_models(Curves(values))) == [True]
    values[f"{OURS}, pca", 0.01] = [50.0]
    assert holds(claims.claims_models(Curves(values))) == [False]


def test_claims_on_errors_can_fail():
    values = {(OURS, 0.01): [0.00999], (SZ3, 0.01): [0.01], (sizes.LITERAL[0], None): [0.7]}
    assert holds(claims.claims_errors(Curves(values))) == [True]
    values[SVD, 0.05] = [0.0501]
    found = claims.claims_errors(Curves(values))
    assert holds(found) == [False]
    assert SVD in found[0].evidence


def test_claims_on_ratios_can_fail():
    values = {(PAPER, 60.0): [60.0], (WHOLE, 60.0): [1.0], (PACKED, 60.0): [1.1]}
    values[OURS_MEAN, 60.0] = [20.0]
    assert holds(claims.claims_ratios(Curves(values))) == [True, True]
    values[PACKED, 60.0] = [30.0]
    assert holds(claims.claims_ratios(Curves(values))) == [False, False]


def test_figures_are_drawn_and_tabled():
    for name, figure in FIGURES.items():
        if name.startswith("codec/table2"):
            curves = Curves({(m, x): [x] for m in METHODS for x in (10.0, 20.0)})
        elif name.startswith("codec/"):
            values = {(m, x): [100 * x] for m in (OURS, SZ3) for x in sizes.TARGETS}
            curves = figure.compared(Curves(values | {(sizes.LITERAL[0], None): [3.0]}))
        else:
            continue
        table = figure_table(figure, curves)
        assert len(table.rows) >= 2
        assert figure_picture(figure, curves).axes

"""Pseudo-transformations by their definitions."""

import numpy as np
import pytest

from kernelatoms.coding import PROJECTIONS
from kernelatoms.features.projections import (
    GraphProjection,
    KFDAProjection,
    KPCAProjection,
    RandomProjection,
    make_projection,
)

RNG = np.random.default_rng(0)
LABELS = np.repeat([0, 1, 2], [7, 9, 8])
ROWS = RNG.standard_normal((24, 5)) + 2 * RNG.standard_normal((3, 5))[LABELS]
G = np.exp(-0.1 * ((ROWS[:, None] - ROWS) ** 2).sum(axis=2))
FAR = 2 - 2 * G  # |phi(x) - phi(y)|^2


def psi_of(projection):
    return projection.coefficients(G, LABELS, np.random.RandomState(0))


def test_kernel_principal_components_are_eigenvectors():
    """Eq. (15): n lambda psi = G psi with lambda psi'psi = 1, largest first."""
    psi = psi_of(KPCAProjection(6))
    assert psi.shape == (24, 6)
    along = G @ psi
    eigenvalues = np.vecdot(along.T, psi.T) / np.vecdot(psi.T, psi.T)
    np.testing.assert_allclose(along, psi * eigenvalues, atol=1e-9)
    np.testing.assert_allclose(eigenvalues / 24 * np.vecdot(psi.T, psi.T), 1)
    np.testing.assert_allclose(eigenvalues, np.linalg.eigvalsh(G)[::-1][:6])


def test_all_components_are_feature_space():
    """Inner products of mapped rows are then those of phi, times n."""
    mapped = G @ psi_of(KPCAProjection(1.0))
    np.testing.assert_allclose(mapped @ mapped.T, 24 * G, atol=1e-9)


def test_fisher_vectors_maximise_the_ratio_of_scatters():
    """Eqs. (16) and (17) by their sums; any other vector has a smaller ratio."""
    ridge = 0.05
    psi = psi_of(KFDAProjection(ridge))
    assert psi.shape == (24, 2)
    means = [G[c == LABELS].mean(axis=0) for c in range(3)]
    between = sum(np.outer(u - v, u - v) for u in means for v in means) / 6
    within = sum(
        sum(np.outer(g - means[c], g - means[c]) for g in G[c == LABELS]) / (c == LABELS).sum()
        for c in range(3)
    ) / 3  # fmt: skip
    within += ridge * np.trace(within) / 24 * np.eye(24)

    def ratio(v):
        return (v @ between @ v) / (v @ within @ v)

    best = np.linalg.eigvals(np.linalg.solve(within, between)).real.max()
    assert ratio(psi[:, 0]) == pytest.approx(best)
    assert (
        ratio(psi[:, 0]) > ratio(psi[:, 1]) > max(ratio(v) for v in RNG.standard_normal((99, 24)))
    )
    np.testing.assert_allclose(np.linalg.norm(psi, axis=0), 1)


def test_random_projections_keep_lengths_on_average_and_follow_the_seed():
    psi = psi_of(RandomProjection(20000))
    assert psi.shape == (24, 24)  # no more than rows
    many = RandomProjection(0.5).coefficients(np.eye(4000), LABELS, np.random.RandomState(1))
    assert many.shape == (4000, 2000)
    np.testing.assert_allclose(np.vecdot(many, many).mean(), 1, rtol=0.01)
    np.testing.assert_array_equal(psi, psi_of(RandomProjection(24)))


@pytest.mark.parametrize("weights", ["heat", "binary"])
@pytest.mark.parametrize("radius", [None, 0.9])
def test_graphs_connect_near_rows(weights, radius):
    graph = GraphProjection(5, n_neighbors=4, radius=radius, weights=weights)
    W = graph.edges(G)
    for i in range(24):
        for j in range(24):
            if radius is not None:
                connected = i != j and FAR[i, j] < radius
            else:
                closer_i = (np.delete(FAR[i], i) < FAR[i, j]).sum()
                closer_j = (np.delete(FAR[j], j) < FAR[i, j]).sum()
                connected = i != j and (closer_i < 4 or closer_j < 4)
            assert (W[i, j] > 0) == connected
    edges = W > 0
    expected = np.exp(-FAR / FAR[edges].mean()) if weights == "heat" else np.ones_like(W)
    np.testing.assert_allclose(W[edges], expected[edges])


def test_graph_functions_are_the_smoothest_but_the_constant():
    """Eq. (21): L g = lambda B g, smallest first, g of unit norm, no part of the constant."""
    graph = GraphProjection(6, n_neighbors=6)
    W = graph.edges(G)
    B = np.diag(W.sum(axis=1))
    psi = psi_of(graph)
    np.testing.assert_allclose(np.linalg.norm(psi, axis=0), 1)
    np.testing.assert_allclose(np.ones(24) @ B @ psi, 0, atol=1e-9)
    smooth = [(g @ (B - W) @ g) / (g @ B @ g) for g in psi.T]
    roots = np.sqrt(np.diag(B))
    expected = np.linalg.eigvalsh((B - W) / np.outer(roots, roots))[1:7]
    np.testing.assert_allclose(smooth, expected, atol=1e-9)


def test_rows_without_neighbours_do_no_harm():
    psi = psi_of(GraphProjection(0.5, radius=1e-9))
    assert psi.shape == (24, 12)
    assert np.isfinite(psi).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: KPCAProjection(0), "n_components must be at least 1"),
        (lambda: KPCAProjection(1.5), "a share above 0 and at most 1"),
        (lambda: RandomProjection("all"), "n_components must be a number or a share"),
        (lambda: KFDAProjection(0), "ridge must be above 0"),
        (lambda: GraphProjection(n_neighbors=0), "n_neighbors must be at least 1"),
        (lambda: GraphProjection(radius=0), "radius must be above 0"),
        (lambda: GraphProjection(width=-1), "width must be above 0"),
        (lambda: GraphProjection(weights="warm"), "weights must be one of 'heat', 'binary'"),
        (lambda: make_projection(KPCAProjection), "projection must be 'auto', None, one of"),
    ],
)
def test_mistakes_are_named(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


def test_names_are_those_of_the_table():
    for name, kind in PROJECTIONS.items():
        assert isinstance(make_projection(name), kind)

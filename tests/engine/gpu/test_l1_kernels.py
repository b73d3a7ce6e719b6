"""Triton kernels of l1 coding, on a card or in Triton's interpreter, against plain torch."""

import os

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

# On a machine with a card the interpreter is not asked for: kernels are compiled.
ON_CARD = torch.cuda.is_available() and os.environ.get("TRITON_INTERPRET") != "1"
if not ON_CARD and os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("needs a card, or TRITON_INTERPRET=1", allow_module_level=True)

from kernelatoms.engine.gpu.l1 import kernels as l1_kernels  # noqa: E402
from kernelatoms.engine.gpu.l1 import lasso as l1  # noqa: E402
from kernelatoms.engine.gpu.l1 import screening as l1_screening  # noqa: E402
from kernelatoms.engine.gpu.l1 import solvers as l1_solvers  # noqa: E402
from oracles import lasso as book  # noqa: E402

DEVICE = torch.device("cuda" if ON_CARD else "cpu")
KINDS = ["unit", "clusters", "twins"]
# The interpreter divides by 0 where other lanes are taken.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def draw(n_signals, n_features, n_atoms, kind="unit", seed=0, dtype=torch.float64):
    random = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=random, dtype=torch.float64)

    def unit(rows):
        return rows / rows.norm(dim=1, keepdim=True)

    X, D = normal(n_signals, n_features), unit(normal(n_atoms, n_features))
    if kind == "clusters":  # cosines of 0.95
        centres = unit(normal(n_atoms // 8 + 1, n_features))
        D = 0.95**0.5 * centres[torch.arange(n_atoms) % len(centres)] + 0.05**0.5 * D
    elif kind == "twins":
        D[n_atoms // 2], D[n_atoms // 3], D[-1] = D[0], -D[1], 0
    elif kind == "near":
        D[1] = D[0] + 1e-5 * unit(normal(1, n_features))[0]
    return X.to(DEVICE, dtype), D.to(DEVICE, dtype)


def lists_of(n, K, n_atoms, seed=0):
    random = torch.Generator().manual_seed(seed)
    return torch.randint(-1, n_atoms, (n, K), generator=random, dtype=torch.int32).to(DEVICE)


def own_rows(D, lists):
    return torch.where((lists >= 0)[:, :, None], D[lists.clamp(min=0).long()], 0)


def gap_of(X, D, W, alpha, positive=False):
    """The largest gap, as a share of the energy."""
    return max(
        book.duality_gap(*(part.cpu().double().numpy() for part in (x, D, w)), alpha, positive)
        / float(x.double() @ x.double())
        for x, w in zip(X, W, strict=True)
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("n_features", "n_atoms", "share"), [(10, 7, 0.1), (20, 30, 0.02), (12, 40, 0.2)]
)
def test_paths_are_those_of_plain_torch(kind, n_features, n_atoms, share):
    X, D = draw(3, n_features, n_atoms, kind)
    gram, b = D @ D.T, X @ D.T
    alpha = share * float(b.abs().max())
    for positive in (False, True):
        grams = gram.expand(3, -1, -1)
        w, left = l1_kernels.follow_paths(grams, b / alpha, positive, 1e-10)
        plain, _ = l1_solvers.follow_paths(grams, b / alpha, positive, 1e-10)
        assert (left <= 1e-9).all()
        if kind != "twins":  # of which either may be used
            torch.testing.assert_close(w, plain, rtol=0, atol=1e-7 * float(plain.abs().max()))
        assert gap_of(X, D, alpha * w, alpha, positive) < 1e-10


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_may_be_known_anywhere(dtype):
    """Gram matrices of each signal's own, of either type; from gradients at a start."""
    X, D = draw(2, 15, 40)
    own = torch.stack([D[:20], D[20:]])
    grams, b = (own @ own.mT).to(dtype), (own @ X[:, :, None])[:, :, 0]
    start = torch.linspace(-2, 2, 40, dtype=torch.float64, device=DEVICE).view(2, 20)
    there = b - (grams.double() @ start[:, :, None])[:, :, 0]
    alpha = 0.1 * float(b.abs().max())
    for positive in (False, True):
        at_zero, _ = l1_kernels.follow_paths(grams, b / alpha, positive, 1e-10)
        w, left = l1_kernels.follow_paths(grams, there / alpha, positive, 1e-10, start / alpha)
        assert (left <= 1e-9).all()
        torch.testing.assert_close(w, at_zero, rtol=1e-8, atol=1e-8)


def test_wide_tableaux():
    X, D = draw(1, 30, 128)
    alpha = 0.4 * float((X @ D.T).abs().max())
    w, left = l1_kernels.follow_paths((D @ D.T)[None], X @ D.T / alpha, False, 1e-10)
    assert (left <= 1e-9).all()
    assert gap_of(X, D, alpha * w, alpha) < 1e-10


def test_what_float32_cannot_tell_apart_is_left_to_plain_torch():
    X, D = draw(2, 6, 8, "near")
    X[0] = D[1] - 0.9999 * D[0]  # nothing but their difference
    X[0] *= 1 / X[0].norm()
    grams, b = (D @ D.T).expand(2, -1, -1), X @ D.T
    alpha = 1e-4 * float(b.abs().max())
    for sign in (1, -1):
        _, left = l1_kernels.follow_paths(grams, sign * b / alpha, False, 1e-10)
        assert (left > 1e-6).any()
    W = l1_solvers.solve_small(grams, b, alpha, False, tol=1e-10)
    assert gap_of(X, D, W, alpha) < 1e-9


def test_no_numbers_no_code():
    grams = torch.eye(5, dtype=torch.float64, device=DEVICE).expand(2, -1, -1)
    b = torch.full((2, 5), 3.0, dtype=torch.float64, device=DEVICE)
    b[0, 2] = torch.nan
    _, left = l1_kernels.follow_paths(grams, b, False, 1e-10)
    assert torch.isnan(left[0])
    w = l1_solvers.solve_small(grams, b, 1.0, False)
    assert not w[0].any()
    torch.testing.assert_close(w[1], b[1] - 1)


@pytest.mark.parametrize(("n_features", "K"), [(64, 16), (70, 40), (9, 64), (130, 128)])
def test_small_grams_are_products_of_gathered_rows(n_features, K):
    # The interpreter multiplies no bfloat16, and rounds nothing in between.
    _, D = draw(1, n_features, 90, dtype=torch.float16)
    lists = lists_of(3, K, 90)
    own = own_rows(D, lists).float()
    found = l1_kernels.small_grams(D, lists)
    torch.testing.assert_close(found, own @ own.mT, rtol=1e-4, atol=1e-4)
    empty = lists < 0
    assert not found[empty].any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("n_features", "K"), [(64, 16), (1030, 33), (9, 1)])
def test_residuals_and_their_gradients(dtype, n_features, K):
    X, D = draw(3, n_features, 50, dtype=dtype)
    lists = lists_of(3, K, 50)
    w = torch.randn(3, K, dtype=torch.float64).to(DEVICE)
    w = torch.where((lists >= 0) & (w > -0.5), w, 0)
    own = own_rows(D, lists).double()
    r = l1_kernels.residuals(X, D, lists, w)
    torch.testing.assert_close(r, X.double() - (w[:, None] @ own)[:, 0], rtol=0, atol=1e-12)
    found = l1_kernels.gradients_at(r, D, lists)
    torch.testing.assert_close(found, (own @ r[:, :, None])[:, :, 0], rtol=0, atol=1e-11)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("n_atoms", [40, 3000])
def test_picks_are_the_largest(dtype, positive, n_atoms):
    random = torch.Generator().manual_seed(0)
    wide = torch.randn(6, n_atoms + 8, generator=random).to(DEVICE, dtype)
    c = wide[:, :n_atoms]
    c[3] = 2.0  # all the same
    c[4, : n_atoms // 2] = 2.0
    lowest = torch.tensor([0.0, 1.5, 9.0, 1.0, 0.5, 1.0], dtype=torch.float64, device=DEVICE)
    found, largest = l1_kernels.pick(c, lowest, 12, positive)
    size = c.double().clamp(min=0) if positive else c.double().abs()
    torch.testing.assert_close(largest, size.amax(1), rtol=0, atol=0)
    top = size.topk(12, dim=1).values
    for row in range(6):
        its = found[row][found[row] >= 0].long()
        assert len(its.unique()) == len(its)
        assert (size[row, its] > lowest[row]).all()
        wanted = int((top[row] > lowest[row]).sum())
        # Of those that are as large as each other some may be missed; never the largest.
        assert len(its) <= wanted
        assert len(its) >= (1 if row == 4 else 9 * wanted / 12)
        if wanted:
            assert size[row, its].max() == top[row, 0]
        missed = top[row][top[row] > lowest[row]][: len(its)]
        if row not in (3, 4):
            sizes = size[row, its].sort(descending=True).values
            torch.testing.assert_close(sizes, missed, rtol=0, atol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_coded_through_kernels(kind, monkeypatch):
    used = []
    for name in ("follow_paths", "small_grams", "residuals", "gradients_at", "pick"):
        plain = getattr(l1_kernels, name)
        monkeypatch.setattr(
            l1_kernels, name, lambda *a, plain=plain, name=name: (used.append(name), plain(*a))[1]
        )
    X, D = draw(3, 24, 60, kind, dtype=torch.float32)
    alpha = 0.2 * float((X @ D.T).abs().max())
    for positive in (False, True):
        coded = l1.lasso_without_gram(
            None, None, None, 3, 60, torch.float32, alpha, positive=positive, rows=(X, D)
        )
        indptr, indices, values, _, gap, missed = coded
        assert not missed.any()
        rows = torch.arange(3, device=DEVICE).repeat_interleave(indptr.diff())
        W = torch.zeros(3, 60, dtype=torch.float64, device=DEVICE)
        W[rows, indices.long()] = values.double()
        energy = X.double().square().sum(1)
        for x, w, its, size in zip(X, W, gap, energy, strict=True):
            true = gap_of(x[None], D, w[None], alpha, positive) * float(size)
            assert abs(true - float(its)) <= 1e-10 * float(size)
            assert true <= 4e-6 * float(size)
    assert len(set(used)) == 5


def test_rough_atoms_are_made_up_for(monkeypatch):
    """Small problems of rounded atoms, and gradients of the true ones, end at the true code."""

    def rough(atoms):
        return l1_screening.HalfAtoms((atoms / 2).bfloat16().to(torch.float16), 2.0)

    monkeypatch.setattr(l1, "half_atoms", rough)
    X, D = draw(3, 24, 60, "clusters", dtype=torch.float32)
    alpha = 0.1 * float((X @ D.T).abs().max())
    coded = l1.lasso_without_gram(None, None, None, 3, 60, torch.float32, alpha, rows=(X, D))
    assert not coded[5].any()
    assert (coded[4] <= 4e-6 * X.double().square().sum(1)).all()

"""Pursuits on a card: ours, the public batched OMP, plain torch, one matrix product.

python -m benchmarks.run gpu, on a machine with a CUDA card. Tensors are on the card; what is timed
begins and ends with it idle. Each contender has a process of its own on the same card.
"""

import os
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from benchmarks.harness import Contender, compare

# features, atoms, nonzeros, signals of ours, signals of the peers (which need more memory)
SHAPES = [
    (256, 1024, 10, 1_000_000, 50_000),
    (784, 700, 11, 500_000, 50_000),
    (256, 2048, 16, 400_000, 20_000),
    (768, 16_384, 32, 65_536, 4_096),
    (768, 65_536, 32, 32_768, 1_024),
    (768, 1_000_000, 32, 4_096, 0),
]
# Rows whose entries round alike, which a Gaussian row's do not; benchmarks.gpu_rows makes them.
KINDS = ("mnist", "usps", "faces", "patches", "levels", "one-hot", "counts")
PEERS = {"batched OMP": "batched_omp", "plain torch": "plain_torch"}
_PEER = "orthogonal-matching-pursuit-gpu"


def gpu_tables(rounds: int) -> None:
    """Print everything."""
    print(f"\n{describe_card()}")
    print("\n## OMP on a card: signals per second (median)\n")
    print("| features, atoms, nonzeros | ours | non-negative | clustered atoms | batched OMP | "
          "plain torch | one float32 product | ours / best peer | peak GiB |")  # fmt: skip
    print("|---" * 9 + "|")
    for shape in SHAPES:
        print(_row(shape, rounds), flush=True)
    print("\n## Supports of 10,000 Gaussian signals, against float64 OMP\n")
    print("| features, atoms, nonzeros | equal | residual norms of the others differ by at most |")
    print("|---|---|---|")
    for shape in SHAPES[:4]:
        result = compare(
            [Contender("same", "agreement", {"shape": shape}, once=True)], 1,
            module="benchmarks.gpu",
        )["same"].value  # fmt: skip
        print(f"| {shape[:3]} | {100 * result[0]:.2f}% | {result[1]:.1e} |", flush=True)
    print("\n## Supports of 10,000 signals that are not Gaussian, unit norm, 12 nonzeros\n")
    print("| rows | features | atoms | tied in float64 | equal of the others | "
          "residual norms of the others differ by at most |")  # fmt: skip
    print("|---" * 6 + "|")
    for kind in KINDS:
        for n_atoms in (12_000, 40_000):
            print(_kind_row(kind, n_atoms), flush=True)
    print("\n## l1 codes, 768 features, 16,384 atoms, about 32 nonzeros, gap 1e-4 of the energy\n")
    print(_l1_lines(rounds), flush=True)
    print("\n## numpy rows through the card: 1,000,000 x 256, 1,024 atoms, 10 nonzeros\n")
    print(_streamed_line(rounds), flush=True)
    print("\n## LKDL on MNIST, the paper's settings: map, learn, classify\n")
    _print_lkdl(rounds)


def describe_card() -> str:
    """Return one line on the card and the versions."""
    import torch

    packages = ("kernelatoms", "torch", "triton", _PEER)
    return f"{torch.cuda.get_device_name()}; " + ", ".join(f"{n} {_version(n)}" for n in packages)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(not installed)"


def _row(shape: tuple[int, ...], rounds: int) -> str:
    case = {"shape": shape}
    contenders = [
        Contender("ours", "ours", case),
        Contender("positive", "ours", {**case, "positive": True}),
        Contender("clustered", "ours", {**case, "clustered": True}),
        Contender("product", "one_product", case),
    ]
    if shape[4]:
        contenders += [Contender(label, name, case) for label, name in PEERS.items()]
    found = compare(contenders, rounds, module="benchmarks.gpu")
    rates = {
        label: (shape[4] if label in PEERS else shape[3]) / result.seconds
        for label, result in found.items()
    }
    best = max((rates[label] for label in PEERS if label in rates), default=float("nan"))
    cells = [_rate(rates.get(name)) for name in
             ("ours", "positive", "clustered", *PEERS, "product")]  # fmt: skip
    peak = found["ours"].value
    return f"| {shape[:3]} | {' | '.join(cells)} | {rates['ours'] / best:.1f} | {peak:.1f} |"


def _kind_row(kind: str, n_atoms: int) -> str:
    contender = Contender("same", "agreement_on", {"kind": kind, "n_atoms": n_atoms}, once=True)
    found = compare([contender], 1, module="benchmarks.gpu")["same"].value
    if found is None:
        return f"| {kind} | not run: KERNELATOMS_DATA names no folder of its file | | | | |"
    n_features, n_atoms, tied, equal, worst = found
    return f"| {kind} | {n_features} | {n_atoms:,} | {tied} | {100 * equal:.2f}% | {worst:.1e} |"


def _rate(rate: float | None) -> str:
    if rate is None:
        return "-"
    return f"{rate / 1e6:.1f} M" if rate >= 1e6 else f"{rate / 1e3:.1f} k"


def _l1_lines(rounds: int) -> str:
    threads = os.cpu_count() or 1
    sizes = {"card": 32_768, "cpu": 512}
    found = compare(
        [
            Contender("card", "l1", {"n_signals": sizes["card"], "device": "cuda"}),
            Contender("clustered", "l1",
                      {"n_signals": sizes["card"], "device": "cuda", "clustered": True}),
            Contender("cpu", "l1", {"n_signals": sizes["cpu"], "device": "cpu"}, once=True),
        ],
        rounds, module="benchmarks.gpu", threads=threads,
    )  # fmt: skip
    rates = {name: sizes.get(name, sizes["card"]) / r.seconds for name, r in found.items()}
    return (
        f"- card: {_rate(rates['card'])} signals/s, {found['card'].value:.1f} nonzeros per signal; "
        f"clustered atoms: {_rate(rates['clustered'])}\n"
        f"- our CPU engine, {threads} threads: {_rate(rates['cpu'])} signals/s\n"
        f"- ratio: {rates['card'] / rates['cpu']:.1f}"
    )


def _print_lkdl(rounds: int) -> None:
    from kernelatoms.datasets import DatasetNotFoundError, load_mnist

    try:
        load_mnist(download_if_missing=False)
    except DatasetNotFoundError:
        print("- not run: KERNELATOMS_DATA names no folder of mnist.npz")
        return
    threads = os.cpu_count() or 1
    for name, device in (("card", "cuda"), (f"our CPU engine, {threads} threads", "cpu")):
        contender = Contender(name, "lkdl", {"device": device}, once=device == "cpu")
        result = compare([contender], rounds, module="benchmarks.gpu", threads=threads)[name]
        print(f"- {name}: {result.seconds:.2f} s, accuracy {result.value:.2f}%", flush=True)


def _streamed_line(rounds: int) -> str:
    threads = os.cpu_count() or 1
    result = compare(
        [Contender("rows", "streamed", {})], rounds, module="benchmarks.gpu", threads=threads
    )["rows"]
    return f"- {result.seconds:.3f} s, copies there and back counted"


# What runs in the children -----------------------------------------------------------------------


def _problem(shape: tuple[int, ...], n_signals: int, clustered: bool = False) -> Any:
    import torch

    n_features, n_atoms, n_nonzero = shape[:3]
    torch.manual_seed(0)

    def unit(n: int) -> Any:
        rows = torch.randn(n, n_features, device="cuda")
        return rows / torch.linalg.vector_norm(rows, dim=1, keepdim=True)

    atoms = unit(n_atoms)
    if not clustered:
        return torch.randn(n_signals, n_features, device="cuda"), atoms
    # Sixteen atoms around every centre, cosines up to about 0.95.
    atoms = unit(-(-n_atoms // 16)).repeat_interleave(16, 0)[:n_atoms] + 0.3 * atoms
    atoms /= torch.linalg.vector_norm(atoms, dim=1, keepdim=True)
    signals = 0.3 * torch.randn(n_signals, n_features, device="cuda") / n_features**0.5
    for _ in range(n_nonzero):
        used = torch.randint(0, n_atoms, (n_signals,), device="cuda")
        signals += torch.randn(n_signals, 1, device="cuda") * atoms[used]
    return signals, atoms


def _idle(call: Callable[[], Any]) -> Callable[[], Any]:
    """Return a call that ends when the card has nothing to do, and reports the memory it took."""
    import torch

    def timed() -> Any:
        found = call()
        torch.cuda.synchronize()
        del found
        return torch.cuda.max_memory_allocated() / 2**30

    timed()
    return timed


def ours(shape: tuple[int, ...], positive: bool = False, clustered: bool = False) -> Any:
    from kernelatoms import sparse_encode

    signals, atoms = _problem(shape, shape[3], clustered)
    return _idle(lambda: sparse_encode(signals, atoms, n_nonzero_coefs=shape[2], positive=positive))


def one_product(shape: tuple[int, ...]) -> Any:
    signals, atoms = _problem(shape, shape[3])
    block = max(1, (4 << 30) // (4 * shape[1]))
    return _idle(
        lambda: [signals[i : i + block] @ atoms.T for i in range(0, len(signals), block)][-1]
    )


def batched_omp(shape: tuple[int, ...]) -> Any:
    """Batched OMP as published, its faster algorithm, on as many signals as its memory allows."""
    from orthogonal_matching_pursuit_gpu import run_omp

    signals, atoms = _problem(shape, shape[4])
    columns = atoms.T.contiguous()
    # It keeps n_nonzero rows of the Gram matrix for every signal.
    block = max(1, (16 << 30) // (8 * shape[1] * shape[2]))
    options = {"normalize": False, "fit_intercept": False, "alg": "v0"}
    return _idle(
        lambda: [
            run_omp(columns, signals[i : i + block], shape[2], **options)
            for i in range(0, len(signals), block)
        ]
    )


def plain_torch(shape: tuple[int, ...]) -> Any:
    """OMP as one would write it in torch: residuals times atoms, then least squares."""
    import torch

    signals, atoms = _problem(shape, shape[4])
    block = max(1, (4 << 30) // (4 * shape[1]))

    def code(own: Any) -> Any:
        picked = torch.zeros((len(own), 0), dtype=torch.int64, device="cuda")
        left, weights = own, None
        for _ in range(shape[2]):
            corr = (left @ atoms.T).abs_().scatter_(1, picked, -1.0)
            picked = torch.cat([picked, corr.argmax(1, keepdim=True)], 1)
            chosen = atoms[picked]
            gram, right = chosen @ chosen.mT, chosen @ own[:, :, None]
            weights = torch.cholesky_solve(right, torch.linalg.cholesky(gram))
            left = own - (weights.mT @ chosen)[:, 0]
        return picked, weights

    return _idle(lambda: [code(signals[i : i + block]) for i in range(0, len(signals), block)])


def agreement(shape: tuple[int, ...]) -> Any:
    """Return a call that compares supports with those of OMP in float64."""
    signals, atoms = _problem(shape, 10_000)
    _, equal, worst = _compared(signals, atoms, shape[2])
    return lambda: lambda: [equal, worst]


def agreement_on(kind: str, n_atoms: int) -> Any:
    """Return a call that compares supports of rows of some kind; None where there are none."""
    import torch

    from benchmarks.gpu_rows import unit_rows

    rows = unit_rows(kind, 10_000, n_atoms)
    if rows is None:
        return lambda: lambda: None
    signals, atoms = (torch.tensor(part, device="cuda") for part in rows)
    tied, equal, worst = _compared(signals, atoms, 12)
    return lambda: lambda: [atoms.shape[1], len(atoms), tied, equal, worst]


def _compared(signals: Any, atoms: Any, n_nonzero: int) -> tuple[int, float, float]:
    """Return how our codes compare with OMP in float64.

    How many signals meet two best atoms that float64 does not tell apart, the share of equal
    supports among the others, and the largest relative difference of their residual norms.
    """
    import torch

    from kernelatoms import sparse_encode

    codes = sparse_encode(signals, atoms, n_nonzero_coefs=n_nonzero)
    wide, n_equal, n_tied, worst = atoms.double(), 0, 0, 0.0
    starts = codes.crow_indices().tolist()
    for first in range(0, len(signals), 2000):
        own = signals[first : first + 2000].double()
        picked = torch.zeros((len(own), 0), dtype=torch.int64, device="cuda")
        left, tied = own, torch.zeros(len(own), dtype=torch.bool, device="cuda")
        for _ in range(n_nonzero):
            corr = (left @ wide.T).abs_().scatter_(1, picked, -1.0)
            best = corr.topk(2, dim=1)
            tied |= best.values[:, 0] - best.values[:, 1] < 1e-11 * own.norm(dim=1)
            picked = torch.cat([picked, best.indices[:, :1]], 1)
            chosen = wide[picked]
            weights = torch.linalg.lstsq(chosen.mT, own[:, :, None]).solution
            left = own - (weights.mT @ chosen)[:, 0]
        for i in (~tied).nonzero()[:, 0].tolist():
            part = slice(starts[first + i], starts[first + i + 1])
            ours = codes.col_indices()[part].long()
            n_equal += bool(torch.equal(ours, picked[i].sort().values))
            rest = (own[i] - codes.values()[part].double() @ wide[ours]).norm()
            worst = max(worst, abs(float(rest / left[i].norm()) - 1))
        n_tied += int(tied.sum())
    return n_tied, n_equal / max(1, len(signals) - n_tied), worst


def _alpha_for(n_nonzero: int, signals: Any, atoms: Any) -> float:
    """Return the weight at which codes have about so many nonzeros, by bisection."""
    from kernelatoms import sparse_encode

    low, high = 1e-3, 1.0
    for _ in range(12):
        alpha = (low * high) ** 0.5
        codes = sparse_encode(signals, atoms, method="lasso", alpha=alpha, gap_tol=1e-4)
        dense = len(codes.values()) > n_nonzero * len(signals)
        low, high = (alpha, high) if dense else (low, alpha)
    return (low * high) ** 0.5


def l1(n_signals: int, device: str, clustered: bool = False) -> Any:
    """Return a call that codes combinations of 16 atoms and noise, 32 nonzeros; reports them."""
    import torch

    from kernelatoms import sparse_encode

    shape = (768, 16_384, 16)
    signals, atoms = _problem(shape, n_signals, clustered=True)
    if not clustered:
        _, atoms = _problem(shape, 1)
        used = torch.randint(0, shape[1], (n_signals, 16), device="cuda")
        weights = torch.randn(n_signals, 16, device="cuda")
        signals = (weights[:, None] @ atoms[used])[:, 0]
        signals += 0.3 * torch.randn_like(signals) / 768**0.5
    signals /= torch.linalg.vector_norm(signals, dim=1, keepdim=True)
    alpha = _alpha_for(32, signals[:256], atoms)
    data: Any = (signals, atoms)
    if device == "cpu":
        data = tuple(part.cpu().numpy() for part in data)

    def call() -> Any:
        codes = sparse_encode(data[0], data[1], method="lasso", alpha=alpha, gap_tol=1e-4)
        if device == "cpu":
            return codes.nnz / n_signals
        torch.cuda.synchronize()
        return len(codes.values()) / n_signals

    call()
    return call


def lkdl(device: str) -> Any:
    """Return a call that learns digits and reports its accuracy in percent."""
    import numpy as np
    import torch

    from kernelatoms import KSVD, ClassDictionaryClassifier, KernelLinearizer
    from kernelatoms.datasets import load_mnist

    data = load_mnist(download_if_missing=False)
    rows: Any = [part.astype(np.float32) for part in (data.X_train, data.X_test)]
    rows = [part / np.linalg.norm(part, axis=1, keepdims=True) for part in rows]
    if device == "cuda":
        rows = [torch.tensor(part, device=device) for part in rows]

    def call(n_rows: int = len(data.y_train)) -> Any:
        linearizer = KernelLinearizer(
            "poly", degree=2, gamma=1, coef0=0, n_landmarks=0.15, n_components=784,
            sampling="coreset", random_state=0,
        )  # fmt: skip
        learner = KSVD(700, n_nonzero_coefs=11, max_iter=2, tol=0)
        model = ClassDictionaryClassifier(learner, random_state=0)
        model.fit(linearizer.fit_transform(rows[0][:n_rows]), data.y_train[:n_rows])
        found = model.predict(linearizer.transform(rows[1]))
        return 100 * float(np.mean(torch.as_tensor(found).cpu().numpy() == data.y_test))

    call(10_000)  # everything is compiled
    return call


def streamed() -> Any:
    """Return a call that codes rows of the host."""
    from kernelatoms import sparse_encode, use_device

    signals, atoms = (part.cpu().numpy() for part in _problem(SHAPES[0], SHAPES[0][3]))

    def call() -> Any:
        with use_device("cuda"):
            return sparse_encode(signals, atoms, n_nonzero_coefs=SHAPES[0][2]).nnz

    call()
    return call

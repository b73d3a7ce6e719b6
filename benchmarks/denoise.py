"""Noise off photographs: ours, the textbook, scikit-learn, SPAMS, non-local means; dB and seconds.

``python -m benchmarks.run denoise``. All get the true sigma. Dictionaries of 256 atoms on patches
of 8 x 8 for everybody; non-local means at the best of its settings for each image, which nobody
knows in practice.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import Contender, compare

MODULE = "benchmarks.denoise"
SIGMAS = (15, 25, 50)
SIDE, N_ATOMS = 8, 256
SMALL = (slice(180, 260), slice(290, 370))  # of china.jpg, for the textbook


def image(name: str) -> Any:
    if name == "camera":
        import skimage.data

        return skimage.data.camera().astype(float)
    from sklearn.datasets import load_sample_image

    grey = load_sample_image("china.jpg").mean(axis=2)
    return grey[SMALL] if name == "china, a corner" else grey


def noisy(name: str, sigma: float) -> tuple[Any, Any]:
    clean = image(name)
    return clean, clean + sigma * np.random.default_rng(0).standard_normal(clean.shape)


def psnr(found: Any, clean: Any) -> float:
    return float(10 * np.log10(255**2 / np.mean((found - clean) ** 2)))


def timed(name: str, sigma: float, denoise: Callable[[Any], Any]) -> Callable[[], Any]:
    clean, given = noisy(name, sigma)

    def call() -> Callable[[], float]:
        found = denoise(given)
        return lambda: psnr(found, clean)

    return call


def ours(name: str, sigma: float, estimate: bool = False) -> Callable[[], Any]:
    from kernelatoms import denoise_image

    denoise_image(np.arange(400.0).reshape(20, 20), 5, max_iter=1)  # compiled loops are loaded
    level = None if estimate else sigma
    return timed(name, sigma, lambda given: denoise_image(given, level, random_state=0))


def textbook(name: str, sigma: float) -> Callable[[], Any]:
    import sys
    from pathlib import Path

    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from oracles.denoising import denoise

    return timed(name, sigma, lambda given: denoise(given, sigma, SIDE, N_ATOMS, 10, 0.5))


def patches(given: Any) -> tuple[Any, Any]:
    windows = np.lib.stride_tricks.sliding_window_view(given, (SIDE, SIDE))
    rows = windows.reshape(-1, SIDE**2)
    means = rows.mean(axis=1, keepdims=True)
    return rows - means, means


def averaged(rows: Any, shape: tuple[int, int]) -> Any:
    from sklearn.feature_extraction.image import reconstruct_from_patches_2d

    return reconstruct_from_patches_2d(rows.reshape(-1, SIDE, SIDE), shape)


def sklearn_example(name: str, sigma: float) -> Callable[[], Any]:
    """As plot_image_denoising.py of scikit-learn does, which codes by OMP with 2 nonzeros.

    From 20,000 patches in two passes (ten in the example, from fewer patches and for 50 atoms):
    with 256 atoms all of them take the better part of an hour.
    """
    from sklearn.decomposition import MiniBatchDictionaryLearning

    def denoise(given: Any) -> Any:
        rows, means = patches(given)
        size = rows.std()
        learner = MiniBatchDictionaryLearning(
            N_ATOMS, batch_size=200, alpha=1.0, max_iter=2, random_state=0,
            transform_algorithm="omp", transform_n_nonzero_coefs=2,
        )  # fmt: skip
        chosen = np.random.default_rng(0).permutation(len(rows))[:20_000]
        learner.fit(rows[chosen] / size)
        return averaged(size * learner.transform(rows / size) @ learner.components_ + means,
                        given.shape)  # fmt: skip

    return timed(name, sigma, denoise)


def spams_omp(name: str, sigma: float) -> Callable[[], Any]:
    """Online dictionary learning, then OMP to the same error as ours."""
    import spams

    from benchmarks.harness import N_THREADS

    def denoise(given: Any) -> Any:
        rows, means = patches(given)
        X = np.asfortranarray(rows.T / 255)
        # Twice the noise in every coefficient is drawn to 0; as many patches as ours learns from.
        D = spams.trainDL(
            X, K=N_ATOMS, lambda1=2 * sigma / 255, iter=100, numThreads=N_THREADS, batchsize=400,
            verbose=False,
        )  # fmt: skip
        bound = (1.15 * sigma / 255 * SIDE) ** 2
        W = spams.omp(X, D, L=SIDE**2 // 2, eps=bound, numThreads=N_THREADS)
        return averaged(255 * (D @ W).T + means, given.shape)

    return timed(name, sigma, denoise)


def non_local_means(name: str, sigma: float, **options: Any) -> Callable[[], Any]:
    from skimage.restoration import denoise_nl_means

    return timed(
        name, sigma,
        lambda given: denoise_nl_means(given, sigma=sigma, fast_mode=True, **options),
    )  # fmt: skip


def best_means(name: str, sigma: float) -> dict[str, Any]:
    """Return the settings at which non-local means does best, by looking at the clean image."""
    from skimage.restoration import denoise_nl_means

    clean, given = noisy(name, sigma)
    settings = [
        {"patch_size": size, "patch_distance": distance, "h": share * sigma}
        for size in (5, 7) for distance in (6, 11) for share in (0.4, 0.5, 0.6, 0.8, 1.0, 1.15)
    ]  # fmt: skip
    return max(
        settings,
        key=lambda s: psnr(denoise_nl_means(given, sigma=sigma, fast_mode=True, **s), clean),
    )


def denoise_tables(only: str = "") -> None:
    """Print the table; of images whose names hold ``only``."""
    print("\n## Noise off photographs: PSNR in dB, and seconds\n")
    heads = ["noisy", "ours", "ours, sigma estimated", "textbook", "scikit-learn", "SPAMS",
             "non-local means"]  # fmt: skip
    print("| image, sigma | " + " | ".join(heads) + " |\n" + "|---" * (len(heads) + 1) + "|")
    for name in ("camera", "china", "china, a corner"):
        for sigma in SIGMAS if only in name else ():
            case = {"name": name, "sigma": sigma}
            contenders = [
                Contender("ours", "ours", case),
                Contender("ours, sigma estimated", "ours", {**case, "estimate": True}),
                Contender("scikit-learn", "sklearn_example", case, once=True),
                Contender("SPAMS", "spams_omp", case),
                Contender("non-local means", "non_local_means", case | best_means(name, sigma)),
            ]
            if name == "china, a corner":
                contenders.append(Contender("textbook", "textbook", case, once=True))
            results = compare(contenders, 1, 1, module=MODULE)
            cells = [
                f"{results[h].value:.2f}, {results[h].seconds:.2f} s" if h in results else "-"
                for h in heads[1:]
            ]
            clean, given = noisy(name, sigma)
            print(f"| {name}, {sigma} | {psnr(given, clean):.2f} | {' | '.join(cells)} |",
                  flush=True)  # fmt: skip

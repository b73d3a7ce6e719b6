"""Every kind of number that the library returns, as digests by name: one JSON object.

Run in processes with other numbers of threads, its outputs must not differ; see
``test_thread_counts``.
"""

import hashlib
import json
import sys
import warnings

import numpy as np
import scipy.sparse

from kernelatoms import (
    KSAD,
    KSCDL,
    KSVD,
    MOD,
    ClassDictionaryClassifier,
    DKSVDClassifier,
    FDDLClassifier,
    KernelCodec,
    KernelKSVD,
    KernelLinearizer,
    KernelMOD,
    KSADClassifier,
    LCKSVDClassifier,
    SparseCoder,
    lasso_path,
    nystrom_error,
    preimage,
    residual_norms,
    sparse_encode,
)
from kernelatoms.features.samplers import SAMPLERS
from kernelatoms.similarity import DISTANCES, KERNELS, make_distance, make_kernel

outputs = {}


def digest(value):
    if scipy.sparse.issparse(value):
        value = [value.data, value.indices, value.indptr]
    if isinstance(value, list | tuple):
        return hashlib.sha256("".join(map(digest, value)).encode()).hexdigest()
    value = np.ascontiguousarray(value)
    return hashlib.sha256(str((value.dtype, value.shape)).encode() + value.tobytes()).hexdigest()


def keep(name, value):
    assert name not in outputs
    outputs[name] = digest(value)


def keep_fitted(name, estimator):
    for attribute, value in vars(estimator).items():
        if attribute.endswith("_") and isinstance(value, np.ndarray | float | int | list):
            if isinstance(value, list) and value and hasattr(value[0], "get_params"):
                for i, each in enumerate(value):
                    keep_fitted(f"{name}.{attribute}[{i}]", each)
            elif not isinstance(value, list) or not any(isinstance(v, str) for v in value):
                keep(f"{name}.{attribute}", value)


def data(dtype, n_rows=1403, n_features=37, n_atoms=51):
    rng = np.random.default_rng(0)
    D = rng.standard_normal((n_atoms, n_features))
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    W = rng.standard_normal((n_rows, n_atoms)) * (rng.random((n_rows, n_atoms)) < 0.1)
    # Without BLAS, whose own threads may change the last bits.
    X = np.einsum("ik,kj->ij", W, D) + 0.1 * rng.standard_normal((n_rows, n_features))
    return X.astype(dtype), D.astype(dtype)


def code(dtype):
    X, D = data(dtype)
    name = dtype.__name__
    candidates = np.random.default_rng(1).permuted(np.tile(np.arange(51), (1403, 1)), axis=1)[:, :9]
    missing = X.copy()
    missing[np.random.default_rng(2).random(X.shape) < 0.2] = np.nan
    greedy = [{"selection": s, "positive": p} for s in ("omp", "ols") for p in (False, True)]
    for kernel in ("linear", "rbf"):
        how = {"kernel": kernel}
        for options in (
            *(dict(n_nonzero_coefs=4, **o) for o in greedy),
            {"max_residual": 0.3},
            {"n_nonzero_coefs": 3, "candidates": candidates},
            {"method": "lasso", "alpha": 0.1},
            {"method": "lasso", "alpha": 0.1, "positive": True},
            {"method": "lasso", "alpha": 0.1, "candidates": candidates},
            {"method": "ridge", "mu": 0.1, "candidates": candidates},
            {"method": "ksc", "alpha": 0.1},
            {"method": "fksc", "alpha": 0.1},
            {"method": "ridge", "mu": 0.1},
        ):
            key = f"sparse_encode {name} {kernel} {sorted(k for k in options)} {options.values()}"
            keep(key[:-1] if "array" not in key else f"{key[:80]} {len(outputs)}",
                 sparse_encode(X, D, **how, **options))  # fmt: skip
        codes = sparse_encode(X, D, n_nonzero_coefs=4, **how)
        keep(f"residual_norms {name} {kernel}", residual_norms(X, D, codes, **how))
        keep(f"missing {name} {kernel}", sparse_encode(missing, D, n_nonzero_coefs=4, **how))
        path = lasso_path(X, D, n_alphas=4, **how)
        keep(f"lasso_path {name} {kernel}", [path.alphas, path.gaps, *path.codes])
    few = sparse_encode(X[:9], D, n_nonzero_coefs=4)
    keep(f"sparse_encode {name} few rows", few)
    for method in ("auto", "ridge", "distance", "fixed-point"):
        coef = sparse_encode(X[:50], D, n_nonzero_coefs=4, kernel="rbf").toarray()
        keep(f"preimage {name} {method}", preimage(coef.T, D, kernel="rbf", method=method))
    keep(f"SparseCoder {name}", SparseCoder(D, n_nonzero_coefs=3).fit(X).transform(X))


def learn(dtype):
    X, _ = data(dtype)
    name = dtype.__name__
    few = {"n_atoms": 20, "max_iter": 4, "random_state": 0}
    learners = {
        "KSVD": KSVD(n_nonzero_coefs=3, **few),
        "MOD": MOD(n_nonzero_coefs=3, **few),
        "MOD l1": MOD(alpha=0.1, **few),
        "KSVD as published": KSVD(n_nonzero_coefs=3, update="exact", init="sums", **few),
        "KernelKSVD": KernelKSVD(n_nonzero_coefs=3, **few),
        "KernelKSVD pruned": KernelKSVD(n_nonzero_coefs=3, coordinates=0.05, **few),
        "KernelMOD": KernelMOD(n_nonzero_coefs=3, **few),
        "KSCDL": KSCDL(n_atoms=20, max_iter=4, random_state=0),
        "KSAD": KSAD(**few),
    }
    for key, learner in learners.items():
        key = f"{key} {name}"
        keep_fitted(key, learner.fit(X))
        keep(f"{key} transform", learner.transform(X))
        if hasattr(learner, "score"):
            keep(f"{key} score", learner.score(X))
        if hasattr(learner, "inverse_transform"):
            keep(f"{key} inverse", learner.inverse_transform(learner.transform(X)))
        if hasattr(learner, "partial_fit"):
            learner.partial_fit(X[:200]).partial_fit(X[200:])
            keep_fitted(f"{key} partial_fit", learner)
    for sampling in SAMPLERS:
        for solver in ("full", "randomized") if sampling == "uniform" else ("full",):
            key = f"KernelLinearizer {name} {sampling} {solver}"
            narrow = {"n_oversamples": 0, "n_passes": 8} if solver == "randomized" else {}
            mapper = KernelLinearizer(
                n_landmarks=60, n_components=20, sampling=sampling, solver=solver, random_state=0,
                **narrow,
            ).fit(X)  # fmt: skip
            keep_fitted(key, mapper)
            F = mapper.transform(X)
            keep(f"{key} transform", F)
            keep(f"{key} inverse", mapper.inverse_transform(F))
            keep(f"{key} error", nystrom_error(mapper, X))
    y = np.arange(len(X)) % 3
    for scheme in ("distributive", "collective"):
        for learner in (KSVD(n_nonzero_coefs=3, n_atoms=15), KernelKSVD(15, n_nonzero_coefs=3)):
            key = f"classifier {name} {scheme} {type(learner).__name__}"
            model = ClassDictionaryClassifier(learner, scheme=scheme, random_state=0).fit(X, y)
            keep_fitted(key, model)
            keep(f"{key} decision", model.decision_function(X))
            keep(f"{key} predict", model.predict(X))
            keep(f"{key} score", model.score(X, y))
    for model in (
        DKSVDClassifier(60, n_nonzero_coefs=4, random_state=0),
        LCKSVDClassifier(60, n_nonzero_coefs=4, variant=1, random_state=0),
        # As many atoms as rows: without k-means, whose sums scikit-learn's threads change.
        FDDLClassifier(len(X), max_iter=2, random_state=0),
        FDDLClassifier(len(X), max_iter=2, decision="global", random_state=0),
        KSADClassifier(40, fisher_weight=1, max_iter=3, random_state=0),
        KSADClassifier(40, within_class_metric=False, max_iter=3, random_state=0),
        KSADClassifier.as_published(40, max_iter=3, random_state=0),
    ):
        key = f"{model!r} {name}"
        model.fit(X, y)
        keep_fitted(key, model)
        keep(f"{key} codes", model.transform(X))
        keep(f"{key} shares", model.predict_proba(X))


def compare(dtype):
    X, D = data(dtype)
    for kernel in KERNELS:
        keep(f"{kernel} {dtype.__name__}", make_kernel(kernel)(np.abs(X), np.abs(D)))
    X, D = data(dtype, n_rows=150, n_features=30)
    for name in DISTANCES:
        shaped = name in ("lbp-chi2", "shape-context", "tangent")
        distance = make_distance(name, **({"image_shape": (6, 5)} if shaped else {}))
        distance = distance.fitted_to(np.abs(X))
        A, B = distance.featurize(np.abs(X)), distance.featurize(np.abs(D))
        keep(f"distance {name} {dtype.__name__}", [A, B, distance.compare(A, B)])


def compress(dtype):
    X = data(dtype, n_rows=300, n_features=12)[0].cumsum(axis=0)
    G = np.stack([X[i : i + 40] @ X[i : i + 40].T for i in range(3)])
    G += G.transpose(0, 2, 1)
    for model in ("lags", "columns", "interpolation", "pca", "ksvd", "kscdl"):
        bytes_ = KernelCodec(0.02, model=model).fit(X).encode(X)
        keep(f"codec {model} {dtype.__name__}", np.frombuffer(bytes_, np.uint8))
        keep(f"decoded {model} {dtype.__name__}", KernelCodec().decode(bytes_))
    keep(f"codec slices {dtype.__name__}", KernelCodec().decode(KernelCodec().fit(G).encode(G)))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parts = [part for part in (compare, code, learn, compress) if part.__name__ in sys.argv]
    for dtype in (getattr(np, name) for name in sys.argv if name.startswith("float")):
        for part in parts or (compare, code, learn, compress):
            part(dtype)
    json.dump(outputs, sys.stdout)

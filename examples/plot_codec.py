r"""
Compress within a bound
=======================

:class:`~kernelatoms.KernelCodec` turns a matrix into few bytes, and promises something of every
row that comes back: :math:`|x - \hat x| \le \epsilon |x|`. How rows are predicted is not a
matter of taste: models are tried on rows kept apart, and the one with the fewest bytes is used.

Three matrices that have nothing in common: sensors with a daily cycle, latencies between the nodes
of a network at several times (symmetric), and rows of ten kinds, each kind a mixture of its own
eight patterns.
"""

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt
import numpy as np

from kernelatoms import KernelCodec
from kernelatoms.codec import compression_figure

rng = np.random.default_rng(0)

hours = np.arange(3000)
sensors = 15 + 8 * np.sin(2 * np.pi * hours / 24)[:, None] * rng.uniform(0.6, 1.2, 16)
sensors = (
    sensors + np.cumsum(rng.normal(0, 0.1, (3000, 16)), axis=0) + rng.normal(0, 0.2, (3000, 16))
)
sensors[rng.random(sensors.shape) < 0.02] = np.nan
sensors = sensors.round(2).astype(np.float32)

places = rng.uniform(0, 100, (60, 3))
distances = 5 + np.linalg.norm(places[:, None] - places, axis=2) * (1 - np.eye(60))
noise = rng.exponential(2, (12, 60, 60))
latencies = (distances + noise + noise.transpose(0, 2, 1)).astype(np.float32)

patterns = rng.normal(size=(10, 8, 120))
kinds = rng.integers(10, size=1500)
mixtures = np.einsum("ij,ijk->ik", rng.normal(size=(1500, 8)), patterns[kinds]).astype(np.float32)

# %%
# The same call for all three. ``encode`` returns a whole file: header, model, rows; ``decode``
# needs nothing else.

matrices = {"sensors": sensors, "latencies": latencies, "mixtures": mixtures}
codecs = {}
for name, X in matrices.items():
    codec = codecs[name] = KernelCodec(max_error=0.02).fit(X)
    data = codec.encode(X)
    decoded = KernelCodec().decode(data)
    rows, back = (np.nan_to_num(a).reshape(-1, X.shape[-1]).astype(float) for a in (X, decoded))
    errors = np.linalg.norm(rows - back, axis=1) / np.linalg.norm(rows, axis=1)
    print(
        f"{name}: {X.nbytes:,} bytes became {len(data):,} by the model {codec.model_.predictor!r}, "
        f"{8 * len(data) / X.size:.2f} bits a value; largest error of a row: {errors.max():.4f}"
    )

# %%
# What was tried, and the bytes that decided. Nobody wins everywhere: sensors are predicted from
# their own past and from each other, latencies from the slices before, one half of each, and
# mixtures need a dictionary, which K-SVD learns.

figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained")
for axis, (name, codec) in zip(axes, codecs.items(), strict=True):
    best = {}
    for model, n_bytes, _ in codec.trials_:
        best.setdefault(model, n_bytes)
    bits = 8 * np.array(list(best.values())) / matrices[name].size
    axis.barh(list(best)[::-1], bits[::-1])
    axis.set(title=name, xlabel="bits a value")
    axis.spines[["top", "right"]].set_visible(False)

# %%
# Original and decoded sensors, the errors below. Rows use what they are allowed: an error far below
# the bound would be bytes for nothing.

data = codecs["sensors"].encode(sensors)
compression_figure(
    sensors[:600],
    KernelCodec().decode(data)[:600],
    title="sensors, at most 2% a row",
    max_error=0.02,
)

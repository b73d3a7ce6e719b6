import dask.array as da
import numpy as np
from dask.distributed import Client, LocalCluster

from kernelatoms import MOD


def rows_of(block_info=None):
    """Make a chunk on a worker; in your own script, read it."""
    number = block_info[None]["chunk-location"][0]
    return np.random.default_rng(number).standard_normal((50_000, 64), dtype=np.float32)


if __name__ == "__main__":  # workers are processes, which import this file
    with LocalCluster(n_workers=2, threads_per_worker=1) as cluster, Client(cluster) as client:
        X = da.map_blocks(rows_of, chunks=((50_000,) * 8, (64,)), dtype=np.float32)
        X = X.persist()  # keep the rows in the workers' memory
        model = MOD(n_atoms=128, n_nonzero_coefs=4, max_iter=3, random_state=0).fit(X)
        print(model.score(X), model.transform(X))

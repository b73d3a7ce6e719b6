"""Stream rows of the host through a device in blocks, with copies beside the computation.

While a block is processed, one thread copies the next one in and another copies the result of the
previous one out. On CUDA, copies go through pinned memory on streams of their own, beside the work;
on other devices they are plain copies.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from kernelatoms.engine.gpu.arrays.conversion import as_device, is_on_device, undisturbed
from kernelatoms.engine.gpu.arrays.device_array import DeviceArray
from kernelatoms.engine.gpu.arrays.ufuncs import torch_dtype
from kernelatoms.engine.gpu.arrays.work import free_bytes, on_card

# Copies of so many bytes are shared among so many threads.
_LARGE, _COPIERS = 1 << 23, 4
# Free memory assumed of devices that do not report it.
_SUPPOSED_FREE = 1 << 33


class DeviceMemoryError(MemoryError):
    """A device has too little memory."""


def card(name: Any) -> Any:
    """Return a device that rows of the host can go through, by its name; or refuse it.

    None for the CPU, unless tests have it count as a device.
    """
    device = as_device(name)
    if device.type == "cpu":
        return device if is_on_device(torch.empty(0, device=device)) else None
    return device if device.index is not None else torch.device("cuda", torch.cuda.current_device())


@contextmanager
def working_on(device: Any) -> Iterator[None]:
    """Make a device the one where kernels are launched; running out of its memory is an error.

    Triton launches on the current device, wherever its arguments are.
    """
    try:
        with undisturbed(), on_card(device):
            yield
    except torch.cuda.OutOfMemoryError as error:
        raise DeviceMemoryError(str(error)) from error


def free_memory(device: Any) -> int:
    """Return how many bytes a device could still give, supposed where it does not say."""
    free = free_bytes(torch.empty(0, device=device))
    return _SUPPOSED_FREE if free is None else free


def rest_on(device: Any) -> DeviceArray:
    """Return an empty array on a device, to choose the machine by."""
    return DeviceArray(torch.empty(0, device=device))


class Transfers:
    """Copies to and from a device beside its work.

    Parameters
    ----------
    device : torch.device
        Where the work is done.
    dtype : numpy dtype
        The dtype of rows on the device.
    """

    def __init__(self, device: Any, dtype: Any) -> None:
        self.device, self.dtype = device, torch_dtype(dtype)
        self.on_card = device.type == "cuda"
        self._copiers = ThreadPoolExecutor(_COPIERS, "kernelatoms-copies")
        self._in: Any
        self._out: Any
        self._in, self._out = (torch.cuda.Stream(device) if self.on_card else None for _ in "io")

    def begin_thread(self) -> None:
        """Have a thread pin memory for this device; a new one would wake the first card for it."""
        if self.on_card:
            torch.cuda.set_device(self.device)

    def load(self, rows: Any) -> tuple[Any, Any]:
        """Copy rows (n, m) of the host to the device; return them and the event of arrival."""
        # Torch keeps pinned memory that is free again, and knows until when copies need it.
        host = torch.empty(rows.shape, dtype=self.dtype, pin_memory=self.on_card)
        self._copy(host.numpy(), rows)
        if not self.on_card:
            return host.to(self.device), None
        with torch.cuda.stream(self._in):
            return host.to(self.device, non_blocking=True), self._in.record_event()

    def _copy(self, out: Any, rows: Any) -> None:
        """Copy rows into pinned memory by several threads; one is slower than a card's bus."""
        step = -(-len(rows) // (_COPIERS if out.nbytes >= _LARGE else 1))
        places = [slice(start, start + step) for start in range(0, len(rows), step)]

        def copy(place: slice) -> None:
            np.copyto(out[place], rows[place], casting="unsafe")

        list(self._copiers.map(copy, places))

    def arrived(self, loaded: tuple[Any, Any]) -> DeviceArray:
        """Return loaded rows; the current stream waits for their arrival."""
        block, there = loaded
        if self.on_card:
            current = torch.cuda.current_stream(self.device)
            current.wait_event(there)
            block.record_stream(current)
        return DeviceArray(block)

    def bring(self, rows: Any, step: int) -> DeviceArray:
        """Return rows (n, m) of the host on the device, copied in blocks."""
        whole = torch.empty(rows.shape, dtype=self.dtype, device=self.device)
        for start in range(0, len(rows), step):
            block = self.arrived(self.load(rows[start : start + step]))
            whole[start : start + step] = block.tensor
        return DeviceArray(whole)

    def mark(self) -> Any:
        """Return an event after all work launched so far."""
        return torch.cuda.current_stream(self.device).record_event() if self.on_card else None

    def fetch(self, array: DeviceArray, done: Any) -> Any:
        """Return an array of the device as a numpy array, after the event ``done``."""
        tensor = array.tensor
        if not self.on_card:
            return tensor.cpu().numpy()
        with torch.cuda.stream(self._out):
            self._out.wait_event(done)
            host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
            host.copy_(tensor, non_blocking=True)
            tensor.record_stream(self._out)
        self._out.synchronize()
        return host.numpy()


def stream(
    rows: Any,
    step: int,
    transfers: Transfers,
    work: Callable[[DeviceArray, int, int], Any],
    keep: Callable[[Any, Callable[[DeviceArray], Any], int, int], None],
) -> None:
    """Work on all rows, block by block; halve the blocks where memory is too small for them.

    Parameters
    ----------
    rows : array of shape (n, m)
        Rows of the host.
    step : int
        The most rows of a block.
    transfers : Transfers
        The way to the device and back.
    work : function
        ``work(block, start, stop)`` returns the answer for rows start to stop.
    keep : function
        ``keep(answer, fetch, start, stop)`` takes in an answer, in the order of the rows;
        ``fetch`` brings an array of it to the host, in memory that is another's afterwards.
    """
    n_rows, kept = len(rows), 0

    def fetch_all(answer: Any, done: Any, first: int, last: int) -> None:
        nonlocal kept
        keep(answer, lambda array: transfers.fetch(array, done), first, last)
        kept = last

    def stream_on(pool: ThreadPoolExecutor) -> None:
        coming = pool.submit(transfers.load, rows[kept : kept + step])
        going: Future[None] | None = None
        for first in range(kept, n_rows, step):
            last = min(first + step, n_rows)
            block = transfers.arrived(coming.result())
            if last < n_rows:
                coming = pool.submit(transfers.load, rows[last : last + step])
            answer = work(block, first, last)
            done = transfers.mark()
            if going is not None:
                going.result()
            going = pool.submit(fetch_all, answer, done, first, last)
        if going is not None:
            going.result()

    while kept < n_rows:
        try:
            with ThreadPoolExecutor(2, "kernelatoms-copies", transfers.begin_thread) as pool:
                stream_on(pool)
        except torch.cuda.OutOfMemoryError as error:
            if step == 1:
                raise DeviceMemoryError(str(error)) from error
            step = max(1, min(step, n_rows - kept) // 2)
        if kept < n_rows and transfers.on_card:
            torch.cuda.empty_cache()

"""Buffers return to the pool exactly when nobody can see them any more."""

import gc

import numpy as np
import torch

from gatefit.ops.workspace import Workspace

SHAPE = (100, 1000)


def test_a_buffer_is_reused_only_after_its_last_view_dies():
    pool = Workspace()
    first = pool.tensor(SHAPE, torch.float32)
    address = first.data_ptr()
    assert address % 64 == 0
    view = first[3].view(10, 100)
    del first
    assert pool.tensor(SHAPE, torch.float32).data_ptr() != address
    array = view.numpy()
    del view
    assert pool.tensor(SHAPE, torch.float32).data_ptr() != address
    del array
    assert pool.tensor((1000, 100), torch.float32).data_ptr() == address
    assert pool.array((50_000,), np.float64).ctypes.data == address


def test_tensors_saved_for_backward_keep_their_buffer():
    pool = Workspace()
    x = torch.ones(SHAPE, requires_grad=True)
    saved = pool.tensor(SHAPE, torch.float32).fill_(3.0)
    address = saved.data_ptr()
    y = (x * saved).sum()
    del saved
    other = pool.tensor(SHAPE, torch.float32).fill_(-1.0)
    assert other.data_ptr() != address
    y.backward()
    assert (x.grad == 3.0).all()
    del y
    gc.collect()
    assert pool.tensor(SHAPE, torch.float32).data_ptr() == address


def test_idle_memory_is_bounded():
    pool = Workspace(idle_bytes=1 << 20)
    for size in range(200_000, 1_000_000, 100_000):
        pool.array((size,), np.float32)
    held = sum(buffer.nbytes for buffers in pool._buffers.values() for buffer, _ in buffers)
    assert held < 6 << 20
    pool.clear()
    assert not pool._buffers


def test_small_arrays_do_not_enter_the_pool():
    pool = Workspace()
    array = pool.array((3, 5), np.uint64)
    assert array.shape == (3, 5)
    assert array.ctypes.data % 64 == 0
    assert not pool._buffers

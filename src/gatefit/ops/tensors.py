"""What kernels ask of torch's tensors before they read them as arrays."""

import torch
from torch import Tensor


def check_cpu_float(**tensors: Tensor) -> None:
    """Refuse what the compiled kernels cannot serve: other devices, other types, a mix of types."""
    kinds = {tensor.dtype for tensor in tensors.values()}
    for name, tensor in tensors.items():
        if tensor.device.type != "cpu":
            raise ValueError(
                f"{name} is on {tensor.device}; the fused kernels run on the CPU: move it there or use "
                f'implementation="reference"'
            )
        if tensor.dtype not in (torch.float32, torch.float64):
            raise TypeError(f"{name} must be float32 or float64, got {tensor.dtype}; convert with .float()")
    if len(kinds) > 1:
        raise TypeError(f"{' and '.join(tensors)} must have one type, got {sorted(map(str, kinds))}")


def version(tensor: Tensor) -> int:
    """How often the tensor was written to; tensors of inference mode do not say."""
    return 0 if tensor.is_inference() else tensor._version

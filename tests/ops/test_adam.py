import copy

import torch

from gatefit.ops.adam import Adam


def test_every_step_is_torchs_to_the_bit_and_so_is_a_restored_one():
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(50, 4, generator=generator)
    gradients = [torch.randn(50, 4, generator=generator) for _ in range(6)]
    ours, theirs, restored = (torch.nn.Parameter(start.clone()) for _ in range(3))
    options = {"lr": 0.03, "betas": (0.8, 0.95), "weight_decay": 0.1}
    optimiser = Adam([ours], **options)
    reference = torch.optim.AdamW([theirs], **options, fused=True)
    other = None
    for step, gradient in enumerate(gradients):
        ours.grad, theirs.grad = gradient.clone(), gradient.clone()
        optimiser.step()
        reference.step()
        assert torch.equal(ours, theirs)
        if other is not None:
            restored.grad = gradient.clone()
            other.step()
            assert torch.equal(restored, theirs)
        elif step == 2:
            restored.data.copy_(ours.data)
            other = Adam([restored], **options)
            other.load_state_dict(copy.deepcopy(optimiser.state_dict()))
    optimiser.zero_grad(set_to_none=True)
    assert ours.grad is None
    assert str(optimiser.state_dict()) == str(reference.state_dict())

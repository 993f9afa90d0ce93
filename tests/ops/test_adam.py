import copy

import pytest
import torch

from gatefit.ops.adam import WORTH_A_THREAD, Adam, _shares
from gatefit.ops.threads import training_threads


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


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_take_whole_parameters_and_show_in_no_bit(threads):
    generator = torch.Generator().manual_seed(0)
    sizes = [(WORTH_A_THREAD // 4 + 3, 4), (7, 3), (WORTH_A_THREAD // 4 + 1, 5), (1,), (WORTH_A_THREAD, 1)]
    starts = [torch.randn(size, generator=generator) for size in sizes]
    ours, theirs = ([torch.nn.Parameter(start.clone()) for start in starts] for _ in range(2))
    with training_threads(1):
        reference = torch.optim.AdamW(theirs, lr=0.03, weight_decay=0.0, fused=True)
        for step in range(3):
            for parameter in theirs:
                parameter.grad = torch.sin(parameter.detach() * (step + 1))
            reference.step()
    with training_threads(threads):
        optimiser = Adam(ours, lr=0.03)
        for step in range(3):
            for parameter in ours:
                parameter.grad = torch.sin(parameter.detach() * (step + 1))
            optimiser.step()
    assert all(torch.equal(one, other) for one, other in zip(ours, theirs, strict=True))


def test_shares_are_even_and_leave_nothing_out():
    million = 1 << 20
    assert _shares([5, 7], 2) == [[0, 1]]
    assert _shares([million] * 6, 2) == [[0, 2, 4], [1, 3, 5]]
    assert _shares([million, 3 * million, million, million], 2) == [[1], [0, 2, 3]]
    assert len(_shares([million] * 3, 8)) == 3


def test_steps_of_a_group_are_counted_by_one_number_after_another_whoever_holds_them():
    parameters = [torch.nn.Parameter(torch.zeros(3)) for _ in range(4)]
    optimiser = Adam([{"params": parameters[:2]}, {"params": parameters[2:], "lr": 0.5}])

    def counts():
        return [
            int(optimiser.state[parameter]["step"]) if parameter in optimiser.state else 0 for parameter in parameters
        ]

    def step(*places):
        optimiser.zero_grad()
        for place in places:
            parameters[place].grad = torch.ones(3)
        optimiser.step()
        return counts()

    assert step(0, 2) == [1, 0, 1, 0]
    assert step(0, 1, 2, 3) == [2, 1, 2, 1]
    assert step(1, 2, 3) == [2, 2, 3, 2]
    optimiser.load_state_dict(copy.deepcopy(optimiser.state_dict()))
    assert step(0, 1, 2) == [3, 3, 4, 2]
    # As seeds that are trained side by side are given theirs.
    optimiser.state[parameters[1]]["step"] = shared = torch.tensor(7.0)
    assert step(0, 1, 2, 3) == [4, 8, 5, 3]
    assert int(shared) == 8

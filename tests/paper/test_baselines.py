import numpy as np
import pytest
import torch

from gatefit.methods import NotBooleanError
from gatefit.paper.baselines import cnn, mlp
from gatefit.training.config import RunConfig
from gatefit.training.data import PackedRows, TrainingData
from gatefit.training.loop import train


def textures(samples=600, seed=0):
    """Images of 8 × 8 bits: noisy lines across, lines down, a chessboard, or nothing but noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, samples)
    row, column = np.indices((8, 8)) % 2
    patterns = np.stack([row, column, row ^ column, np.zeros((8, 8))]).reshape(4, 64)
    x = rng.random((samples, 64)) < 0.1 + 0.8 * patterns[y]
    half = samples // 2
    targets = torch.as_tensor(y)
    return TrainingData(PackedRows(x[:half]), targets[:half], PackedRows(x[half:]), targets[half:])


# tab. mlp-cnn-baseline. The counts of the CNNs with six convolutions are those on CIFAR-10; the others MNIST's.
@pytest.mark.parametrize(
    ("network", "count", "shown"),
    [
        (lambda: mlp(784, 10, 3, 64), 59_210, "59k"),
        (lambda: mlp(784, 10, 6, 128), 184_330, "184k"),
        (lambda: cnn(1, 10, 3, 3), 93_962, "94k"),
        (lambda: cnn(93, 10, 6, 2), 711_786, "712k"),
        (lambda: cnn(93, 10, 6, 3), 1_597_066, "1.60M"),
    ],
    ids=["mlp-3", "mlp-6", "cnn-3x3-3", "cnn-2x2-6", "cnn-3x3-6"],
)
def test_parameter_counts_are_the_papers(network, count, shown):
    assert network().parameter_count == count
    assert (f"{count / 1e6:.2f}M" if count > 1e6 else f"{count / 1e3:.0f}k") == shown


@pytest.mark.parametrize("kernel", [1, 2, 3, 4])
@pytest.mark.parametrize("depth", [1, 2, 3, 6])
def test_convolutions_keep_the_size_and_every_second_halves_it(kernel, depth):
    network = cnn(3, 5, depth, kernel)
    sizes = []
    for layer in network.layers:
        if isinstance(layer, torch.nn.Conv2d | torch.nn.MaxPool2d):
            layer.register_forward_hook(lambda _, __, y: sizes.append(y.shape[-1]))
    assert network(torch.zeros(2, 3 * 32 * 32, dtype=torch.uint8)).shape == (2, 5)
    assert sizes == {1: [32], 2: [32, 32, 16], 3: [32, 32, 16, 16], 6: [32, 32, 16, 16, 16, 8, 8, 8, 4]}[depth]


def test_planes_are_channel_row_column():
    planes = cnn(2, 2, 1, 1).layers[0]
    assert torch.equal(planes(torch.arange(8.0)[None]), torch.arange(8.0).reshape(1, 2, 2, 2))
    with pytest.raises(ValueError, match=r"^10 bits are no square image of 2 planes; use channels=1 for MNIST"):
        planes(torch.zeros(1, 10))


def test_initialisation_is_a_function_of_the_seed_alone():
    before = torch.get_rng_state()
    first, again, other = mlp(6, 3, 2, 5, seed=1), mlp(6, 3, 2, 5, seed=1), mlp(6, 3, 2, 5, seed=2)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True))
    assert not torch.equal(first.layers[0].weight, other.layers[0].weight)
    bound, weight = 5**-0.5, first.layers[2].weight.detach()
    assert weight.abs().max() <= bound
    assert float(weight.std()) == pytest.approx(bound / 3**0.5, rel=0.3)


@pytest.mark.parametrize("network", [lambda: mlp(64, 4, 2, 32), lambda: cnn(1, 4, 2, 3)], ids=["mlp", "cnn"])
def test_a_baseline_learns(network):
    data, model = textures(), network()
    config = RunConfig(dataset="custom", method="mlp", steps=120, batch_size=64, evaluate_every=20)
    result = train(config, model, data)
    assert result.finished
    assert result.summary["test_accuracy"] > 0.95
    assert result.summary["last_10_accuracy"] == pytest.approx(np.mean([r["test_soft"] for r in result.state.metrics]))
    assert result.summary["boolean"] is False
    assert [row["step"] for row in result.state.metrics] == [20, 40, 60, 80, 100, 120]
    x = data.test.batch(np.arange(data.test.samples))
    correct = (model.soft_scores(x).argmax(1) == data.test_targets).double().mean()
    assert float(correct) == result.summary["test_accuracy"]


def test_a_stopped_run_resumes_to_the_same_bits(tmp_path):
    def run(folder, stop_at):
        model, asked = mlp(64, 4, 2, 16), iter(range(1, 1000))
        config = RunConfig(method="mlp", learning_rate=0.001, steps=30, batch_size=32, evaluate_every=7)
        return model, train(config, model, textures(), folder=folder, should_stop=lambda: next(asked) == stop_at)

    whole, expected = run(tmp_path / "whole", None)
    _, stopped = run(tmp_path / "parts", 11)
    assert not stopped.finished
    resumed, result = run(tmp_path / "parts", None)
    assert result.finished
    assert result.state.metrics == expected.state.metrics
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), resumed.parameters(), strict=True))


def test_a_baseline_is_no_circuit():
    model = mlp(4, 2, 1, 3).eval()
    with pytest.raises(NotBooleanError, match=r"no deployed Boolean form; use soft_scores\(x\)"):
        model(torch.zeros(1, 4))
    assert model.soft_scores(torch.zeros(1, 4)).shape == (1, 2)


def test_sizes_are_checked():
    with pytest.raises(ValueError, match=r"^depth must be a whole number >= 1, got 0$"):
        mlp(4, 2, 0, 3)
    with pytest.raises(ValueError, match=r"^kernel must be a whole number >= 1, got 2.5$"):
        cnn(1, 2, 1, 2.5)
    with pytest.raises(ValueError, match=r"at most 6 convolutions, got depth=7$"):
        cnn(1, 2, 7, 3)
    with pytest.raises(ValueError, match=r"^the network reads 63 bits a sample, got 64$"):
        train(RunConfig(steps=1), mlp(63, 4, 1, 8), textures())

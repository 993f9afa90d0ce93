"""Training on a device: what is asked for is found or refused in a sentence, and training there is what it is here.

Without a GPU the Triton kernels run on the CPU, by Triton's interpreter; `pytest -m gpu` runs them on the device.
"""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import torch

from gatefit.bits import unpack
from gatefit.encoders import Threshold
from gatefit.network import LogicNetwork
from gatefit.ops.implementations import IMPLEMENTATIONS, REFERENCE, TRITON
from gatefit.ops.triton_launch import interpreted
from gatefit.training import device as module
from gatefit.training.augmentation import Augmentation, AugmentedImages
from gatefit.training.config import RunConfig
from gatefit.training.data import PackedRows, Subset, TrainingData, bit_source
from gatefit.training.device import DeviceError, DeviceRows, check_room, choose_device, data_on, needed_bytes, placed
from gatefit.training.loop import train
from gatefit.training.machine import then
from gatefit.training.runs import execute
from triton_interpreter import patched_once_a_launch

STEPS = 3


def data_of(samples=70, bits=12):
    values = np.random.default_rng(0).random((samples, bits)) < 0.5
    targets = torch.from_numpy((values[:, 0] ^ values[:, 1]).astype(np.int64))
    return TrainingData(PackedRows(values), targets, PackedRows(values[:20]), targets[:20])


def config_of(**options):
    return RunConfig(dataset="monks-2", width=20, depth=2, steps=STEPS, batch_size=66, evaluate_every=STEPS, **options)


def device_of_triton():
    """The device, and a context in which its kernels run; skips where there is none."""
    pytest.importorskip("triton")
    if interpreted():
        return torch.device("cpu"), patched_once_a_launch()
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device, or TRITON_INTERPRET=1")
    return torch.device("cuda"), nullcontext()


@pytest.fixture
def cuda(monkeypatch):
    """A machine that has all it takes, to take things from."""
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "init", lambda: None)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda number: (8, 0))
    monkeypatch.setattr(module, "installed", lambda: True)
    return monkeypatch


def test_a_device_is_chosen_where_it_can_be_used(cuda):
    assert choose_device("cpu") == torch.device("cpu")
    assert choose_device("auto") == choose_device("cuda") == torch.device("cuda")
    assert choose_device("cuda:0") == torch.device("cuda:0")


def fail(message):
    def raises():
        raise RuntimeError(message)

    return raises


MISSING = {
    "no build": (
        torch.version,
        "cuda",
        None,
        "this torch is built for the CPU alone; install a build for CUDA, or",
    ),
    "old driver": (
        torch.cuda,
        "init",
        fail("The NVIDIA driver on your system is too old (found version 11040).\nmore"),
        r"driver on your system is too old \(found version 11040\); update the NVIDIA driver, or use device cpu",
    ),
    "none": (torch.cuda, "device_count", lambda: 0, "there are 0 CUDA devices, numbered from 0"),
    "old device": (
        torch.cuda,
        "get_device_capability",
        lambda number: (6, 1),
        "capability 6.1, and the kernels need 8",
    ),
    "no triton": (module, "installed", lambda: False, r"need Triton; install it with pip install 'gatefit\[gpu\]', or"),
}


@pytest.mark.parametrize("what", MISSING)
def test_what_is_missing_is_said_in_a_sentence_and_auto_takes_the_cpu(cuda, what):
    where, name, value, message = MISSING[what]
    cuda.setattr(where, name, value)
    with pytest.raises(DeviceError, match=message) as raised:
        choose_device("cuda")
    assert "\n" not in str(raised.value)
    assert choose_device("auto") == torch.device("cpu")


def test_an_unknown_device_and_a_number_that_is_not_there_are_refused(cuda):
    for odd in ("tpu", "cuda:", "cuda:one", "auto:1", "cpu:0", "", None):
        with pytest.raises(DeviceError, match=f"unknown device {odd!r}; choose one of auto, cpu, cuda"):
            choose_device(odd)
    with pytest.raises(DeviceError, match="device 'cuda:3' cannot be used: there are 1 CUDA devices"):
        choose_device("cuda:3")


def test_a_device_too_small_is_refused_with_what_would_fit():
    network, data = LogicNetwork(12, 2, 2000, 4, method="soft-mix", wiring="random"), data_of()
    needed = needed_bytes(network, data, 1000)
    check_room(network, data, 1000, needed, "cuda")
    with pytest.raises(
        DeviceError, match=r"needs about 0\.\d+ GB on cuda, which has 0\.\d+ GB free; batch_size="
    ) as raised:
        check_room(network, data, 1000, needed * 3 // 4, "cuda")
    fitting = int(str(raised.value).rsplit("batch_size=", 1)[1].split()[0])
    check_room(network, data, fitting, needed * 3 // 4, "cuda")
    with pytest.raises(DeviceError, match="use a narrower network, or device cpu"):
        check_room(network, data, 1, 1000, "cuda")
    boolean = LogicNetwork(12, 2, 2000, 4, method="hard-st", wiring="random")
    assert needed_bytes(boolean, data, 1000) < needed
    skips = LogicNetwork(12, 2, 2000, 4, method="hard-st", wiring="random", skips="inputs")
    assert needed_bytes(skips, data, 1000) > needed


def test_on_the_cpu_nothing_moves():
    data, network = data_of(), LogicNetwork(12, 2, 20, 2)
    with placed([network], data, "cpu", 66) as same:
        assert same is data


@pytest.mark.gpu
@pytest.mark.parametrize("implementation", [REFERENCE, TRITON], ids=lambda each: each.name)
def test_batches_made_on_the_device_are_those_of_the_cpu(implementation):
    device, running = device_of_triton() if implementation is TRITON else (torch.device("cpu"), nullcontext())
    data = data_of(samples=100, bits=70)
    there = data_on(data, device, implementation)
    indices = np.random.default_rng(1).integers(100, size=130)
    with running:
        batch = there.train.batch(indices)
    assert isinstance(there.train, DeviceRows)
    assert batch.words.device.type == device.type
    expected = data.train.batch(indices)
    assert np.array_equal(batch.words.cpu().numpy().view(np.uint64), expected.words)
    assert unpack(expected).shape == (130, 70)
    with pytest.raises(IndexError, match="there are 100 samples"):
        there.train.batch(np.array([100]))


@pytest.mark.gpu
@pytest.mark.outside
@pytest.mark.parametrize(
    "options",
    [
        {"method": "soft-mix"},
        {"method": "multilinear-covjac"},
        {"method": "gumbel-st"},
        {"method": "multilinear-ste"},
        {"method": "multilinear-free"},
        {"method": "soft-mix", "wiring": "learned"},
        {"method": "hard-st", "wiring": "learned"},
        {"method": "multilinear-covjac", "wiring": "learned,tree", "widths": (40, 20)},
        {"method": "multilinear-ste", "widths": (30, 20, 10), "votes": "all"},
        {"method": "soft-mix", "widths": (24, 20), "skips": "inputs"},
        {"method": "hard-st", "wiring": "learned", "skips": "all"},
    ],
    ids=lambda options: " ".join(str(value).replace(" ", "") for value in options.values()),
)
def test_training_by_triton_is_training_by_the_reference(options):
    device, running = device_of_triton()
    runs = {}
    for name in ("reference", "triton"):
        named = {**options, "implementation": name if device.type == "cpu" else "auto"}
        widths = named.pop("widths", (20, 20))
        network = LogicNetwork(12, 2, widths, seed=1, **named)
        data = data_of()
        if name == "triton":
            network.to(device)
            data = data_on(data, device, IMPLEMENTATIONS[name])
            assert network.implementation == TRITON
        with running if name == "triton" else nullcontext():
            result = train(config_of(method=options["method"]), network, data, threads=1)
        runs[name] = {key: value.cpu() for key, value in network.state_dict().items()}, result.state.metrics[-1]
    (expected, metrics), (found, own) = runs["reference"], runs["triton"]
    for key, value in expected.items():
        if value.is_floating_point():
            assert torch.allclose(found[key], value, atol=2e-5, rtol=1e-4), key
        else:
            assert torch.equal(found[key], value), key
    assert own["loss"] == pytest.approx(metrics["loss"], abs=1e-5)
    assert own["train_soft"] == metrics["train_soft"]


def test_subsets_of_one_set_share_it_on_the_device():
    data = data_of()
    kept, apart = np.arange(0, 50), np.arange(50, 70)
    halves = replace(data, train=Subset(data.train, kept), test=Subset(data.train, apart))
    there = data_on(halves, "cpu", REFERENCE)
    assert there.train.source is there.test.source
    assert isinstance(there.train.source, DeviceRows)
    for own, moved in ((halves.train, there.train), (halves.test, there.test)):
        expected = own.training_batch(np.array([3, 0, 7]), seed=0, step=0)
        found = moved.training_batch(np.array([3, 0, 7]), seed=0, step=0)
        assert np.array_equal(found.words.numpy().view(np.uint64), expected.words)
    network = LogicNetwork(12, 2, 20, 2)
    once, twice = needed_bytes(network, halves, 0), needed_bytes(network, replace(data, test=data_of().train), 0)
    assert twice - once == pytest.approx(1.1 * data.train.rows.nbytes, abs=1)


@pytest.mark.gpu
@pytest.mark.outside
def test_images_that_are_moved_are_copied_batch_by_batch():
    device, running = device_of_triton()
    images = np.random.default_rng(0).integers(256, size=(70, 16), dtype=np.uint8)
    encoder = Threshold(127.5).fit(images)
    source = AugmentedImages(images, (4, 4, 1), encoder, Augmentation(shift=1, rotate=10.0))
    targets = torch.from_numpy((images[:, 0] > 128).astype(np.int64))
    data = TrainingData(source, targets, bit_source(images[:20], encoder), targets[:20])
    states = []
    for name in ("reference", "triton"):
        network = LogicNetwork(encoder.bits, 2, 20, 2, seed=1, implementation="auto")
        network.to(device)
        network.implementation = name
        there = data_on(data, device, IMPLEMENTATIONS[name])
        assert there.train is source
        with running if name == "triton" else nullcontext():
            train(config_of(method="multilinear-covjac"), network, there, threads=1)
        states.append({key: value.cpu() for key, value in network.state_dict().items()})
    expected, found = states
    for key, value in expected.items():
        assert torch.allclose(found[key].double(), value.double(), atol=2e-5, rtol=1e-4), key


@pytest.mark.gpu
@pytest.mark.outside
def test_a_run_goes_on_where_it_is_resumed(tmp_path):
    device, running = device_of_triton()
    config, data = config_of(method="multilinear-covjac"), data_of()

    def stopping():
        steps = iter([False, True])
        return lambda: next(steps)

    def network(name):
        return LogicNetwork(12, 2, 20, 2, seed=1, implementation=name)

    first = network("numba")
    assert not train(config, first, data, folder=tmp_path, should_stop=stopping(), threads=1).finished
    second = network("auto").to(device)
    second.implementation = "triton"
    with running:
        result = train(config, second, data_on(data, device, TRITON), folder=tmp_path, threads=1)
    assert result.finished
    assert result.state.step == STEPS
    whole = network("numba")
    train(config, whole, data, threads=1)
    for name, value in whole.state_dict().items():
        if value.is_floating_point():
            assert torch.allclose(second.state_dict()[name].cpu(), value, atol=2e-5), name


@pytest.mark.gpu
@pytest.mark.outside
def test_the_same_seed_gives_the_same_bits():
    device, running = device_of_triton()
    states = []
    with running:
        for _ in range(2):
            network = LogicNetwork(12, 2, 20, 2, seed=1, implementation="auto").to(device)
            network.implementation = "triton"
            train(config_of(method="multilinear-covjac"), network, data_on(data_of(), device, TRITON), threads=1)
            states.append({name: value.cpu() for name, value in network.state_dict().items()})
    first, second = states
    assert all(torch.equal(value, second[name]) for name, value in first.items())


def test_a_run_says_on_which_devices_it_was_trained():
    cpu, gpu = "x86-64 with AVX2", "NVIDIA A100 with Triton 3.9.0"
    assert then(None, cpu) == then(cpu, cpu) == cpu
    assert then("x86_64 with AVX512, one processor", cpu) == cpu
    assert then(cpu, gpu) == then(f"{cpu}, then {gpu}", gpu) == f"{cpu}, then {gpu}"
    assert then(f"{cpu}, then {gpu}", cpu) == f"{cpu}, then {gpu}, then {cpu}"


def test_several_runs_side_by_side_need_the_cpu(tmp_path):
    from gatefit.training.runs import execute_together
    from gatefit.training.side_by_side import NotSideBySideError

    configs = [replace(config_of(method="soft-mix"), seed=seed) for seed in (0, 1)]
    with pytest.raises(NotSideBySideError, match="side by side needs the CPU, got cuda"):
        execute_together(configs, folders=[tmp_path / "a", tmp_path / "b"], device="cuda")


def test_what_does_not_fit_leaves_no_folder_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (1000, 1000))
    config = RunConfig(dataset="monks-1", width=20, depth=2, steps=5)
    with pytest.raises(DeviceError, match=r"GB on cuda, which has 0\.00 GB free"):
        execute(config, folder=tmp_path / "run", device="cuda")
    assert not (tmp_path / "run").exists()

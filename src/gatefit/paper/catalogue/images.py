"""Images (app. cifar-full, scale-up, binarization, wiring-sensitivity): gaps, larger sets, wirings, baselines."""

from collections.abc import Sequence
from dataclasses import replace

from gatefit.paper.catalogue.draft import NO_RUNS, Draft, Part, above, best_of, experiment, paper_row
from gatefit.paper.catalogue.measures import (
    best_accuracy,
    discretisation_gap,
    generalisation_gap,
    last_accuracy,
    summarise,
)
from gatefit.paper.catalogue.operations import baseline_size, circuit_size
from gatefit.paper.catalogue.remarks import listed
from gatefit.paper.catalogue.standard_errors import difference
from gatefit.paper.outcome import Cell, Experiment, Value
from gatefit.paper.scales import MAIN_METHODS, METHOD_NAMES, SETTINGS, baseline_runs, width_name
from gatefit.paper.values import CIRCUIT_SIZE, SIZES, paper, paper_number
from gatefit.training.config import RunConfig

WIRINGS = 5
BASELINES = ("mlp-3x64", "mlp-6x128", "cnn-3x3-3", "cnn-2x2-6", "cnn-3x3-6")
SCALE_UP = {
    "cifar100/256000": ("cifar100", 256_000),
    "cifar100/1280000": ("cifar100", 1_280_000),
    "tiny-imagenet/512000": ("tiny-imagenet", 512_000),
    "tiny-imagenet/2560000": ("tiny-imagenet", 2_560_000),
}


def show_cifar(draft: Draft) -> None:
    """tab:cifar-full."""
    block, rows = paper("tab:cifar-full"), []
    for m in MAIN_METHODS:
        cells = [
            draft.cell(block[m, "accuracy"], "cifar10", m),
            draft.cell(block[m, "discretisation"], "cifar10", m, discretisation_gap, "pp"),
            draft.cell(block[m, "generalisation"], "cifar10", m, generalisation_gap, "pp"),
        ]
        rows.append((METHOD_NAMES[m], cells))
    draft.table(f"{draft.name('cifar10')}, L=6: accuracy and gaps", ("accuracy, %", "DG", "Gen"), rows, digits=3)
    values = draft.methods("cifar10", MAIN_METHODS)
    theirs = paper_row(block, MAIN_METHODS, "accuracy")
    draft.claim("M-CovJac is the best method on CIFAR-10", best_of("", values, paper=theirs), id="best")
    draft.claim(
        "M-STE is the worst method on CIFAR-10",
        *(
            above("", (name, values[name]), ("M-STE", values["M-STE"]), (theirs[name], theirs["M-STE"]))
            for name in values
            if name != "M-STE"
        ),
        id="ste-worst",
    )
    parts = []
    for m in MAIN_METHODS:
        gap = draft.value("cifar10", m, discretisation_gap, "pp")
        text = f"{METHOD_NAMES[m]} " + (NO_RUNS if gap is None else f"{gap.mean:+.3f}")
        parts.append(Part(None if gap is None else abs(gap.mean) <= 0.2, text))
    draft.claim("Every method has next to no discretisation gap (at most 0.2 points)", *parts, id="gap")
    here = paper_number("tab:cifar-full", "gumbel-st", "accuracy")
    there, best = (paper_number(label, "gumbel-st", "cifar10") for label in ("tab:mnist-main", "tab:best-acc"))
    draft.note(f"The paper gives Gumbel-ST as {here} % here and as {there} % in tab:mnist-main, and its best "
               f"checkpoint as {best} %, below its last-10 accuracy.")  # fmt: skip


def show_scale_up(draft: Draft) -> None:
    """tab:scale-up."""
    gaps: dict[str, Value | None] = {}
    best = []
    for label, caption, metric in (
        ("tab:scale-up", f"{draft.measure}, %", last_accuracy),
        ("tab:scale-up/best", "best checkpoint, %", best_accuracy),
    ):
        rows, block = [], paper(label)
        for place, (dataset, width) in SCALE_UP.items():
            cells = [draft.cell(block[place, m], dataset, m, metric, width=width) for m in MAIN_METHODS]
            rows.append((f"{draft.name(dataset)}, k={width_name(width)}", cells))
        columns = [METHOD_NAMES[m] for m in MAIN_METHODS]
        draft.table(f"Larger data sets and widths: {caption}", columns, rows, best="rows")
    block = paper("tab:scale-up")
    for place, (dataset, width) in SCALE_UP.items():
        values = draft.methods(dataset, MAIN_METHODS, width=width)
        gaps[place] = difference(values["M-CovJac"], values["M-STE"])
        theirs = {METHOD_NAMES[m]: block[place, m] for m in MAIN_METHODS}
        name = f"{draft.name(dataset)} k={width_name(width)}"
        best.append(best_of(name, values, paper=theirs) if draft.has(dataset) else draft.absent(dataset))
    draft.claim("M-CovJac is the best method at every scale", *best, id="best-everywhere")
    for dataset in ("cifar100", "tiny-imagenet"):
        narrow, wide = (place for place in SCALE_UP if place.startswith(dataset))
        typed = [difference(block[p, "multilinear-covjac"], block[p, "multilinear-ste"]) for p in (wide, narrow)]
        part = above("", ("wide", gaps[wide]), ("narrow", gaps[narrow]), (typed[0], typed[1]))
        draft.claim(
            f"The CovJac - STE gap grows with width on {draft.name(dataset)}",
            part if draft.has(dataset) else draft.absent(dataset),
            id=f"gap-grows-{dataset}",
        )


def _wirings(draft: Draft) -> list[RunConfig]:
    """One gate seed, five wirings: the first is the run that every other table has."""
    return [draft.configs("cifar10", "multilinear-covjac", wiring_seed=w)[0] for w in range(WIRINGS)]


def show_wiring(draft: Draft) -> None:
    """tab:wiring-ablation."""
    block = paper("tab:wiring-ablation")
    configs = _wirings(draft)
    numbers = [value for record in draft.get(configs) if (value := last_accuracy(record)) is not None]
    mean = draft.cell_of(configs, block["cifar10", "mean"])
    note = mean.note
    cells = [mean]
    for name, pick in (("lowest", min), ("highest", max)):
        cells.append(Cell(Value(pick(numbers)) if numbers else None, block["cifar10", name], note))
    draft.table(
        "M-CovJac with five wirings, one seed of the gates: accuracy, %",
        ("mean", "lowest", "highest"),
        [(draft.name("cifar10"), cells)],
        best="none",
    )
    seeds = draft.value("cifar10", "multilinear-covjac")
    spread = summarise(numbers)
    complete = len(numbers) == WIRINGS and spread is not None and spread.std is not None
    text = f"{len(numbers)} wirings: "
    if spread is not None and spread.std is not None:
        typed = block["cifar10", "mean"]
        deviation = typed.std if typed is not None else None
        reach = paper_number("tab:wiring-ablation", "cifar10", "highest") - paper_number(
            "tab:wiring-ablation", "cifar10", "lowest"
        )
        text += f"standard deviation {spread.std:.2f} (paper: {deviation}), range "
        text += f"{max(numbers) - min(numbers):.2f} ({reach:.2f})"
        if seeds is not None and seeds.std is not None:
            text += f"; over seeds of one wiring {seeds.std:.2f}"
    else:
        text += NO_RUNS
    draft.claim(
        "Different random wirings perform alike: their accuracies spread by less than a point",
        Part(spread.std < 1.0 if complete and spread is not None and spread.std is not None else None, text),
        id="wirings-alike",
    )


def _baseline(draft: Draft, dataset: str, name: str) -> Sequence[RunConfig]:
    draft.configs(dataset, "multilinear-covjac")  # So that the notes speak of the data set.
    return baseline_runs(draft.scale, draft.seeds, dataset, name)


def show_baselines(draft: Draft) -> None:
    """tab:mlp-cnn-baseline."""
    block, rows = paper("tab:mlp-cnn-baseline"), []
    datasets = ("mnist", "cifar10")
    values: dict[tuple[str, str], Value | None] = {}
    for name in BASELINES:
        cells = []
        for dataset in datasets:
            theirs = block[name, dataset]
            if theirs is None:
                cells.append(Cell("—", "—"))
                continue
            configs = _baseline(draft, dataset, name)
            cell = draft.cell_of(configs, theirs) if configs else Cell(None, theirs, "too slow for this scale")
            cells.append(cell)
            values[name, dataset] = cell.value
        rows.append((METHOD_NAMES[name], cells))
    m = "multilinear-covjac"
    rows.append((METHOD_NAMES[m], [draft.cell(block[m, dataset], dataset, m) for dataset in datasets]))
    for dataset in datasets:
        values[m, dataset] = draft.value(dataset, m)
    columns = [draft.name(dataset) for dataset in datasets]
    draft.table("Floating-point networks on the same bits: accuracy, %", columns, rows)
    _sizes(draft)
    for dataset in datasets:
        known = [name for name in BASELINES if name.startswith("cnn") and values.get((name, dataset)) is not None]
        best = known[-1] if known else "cnn-2x2-6"
        part = above(
            "",
            (METHOD_NAMES[best], values.get((best, dataset))),
            ("M-CovJac", values[m, dataset]),
            (block[best, dataset], block[m, dataset]),
        )
        if draft.scale == "small" and part.holds is not None:
            part = replace(part, evidence=f"{part.evidence}, after a twentieth of the samples")
        draft.claim(
            f"A convolutional network on the same bits is more accurate than the circuit on {draft.name(dataset)}",
            part,
            id=f"cnn-ahead-{dataset}",
        )
        draft.claim(
            f"The circuit is more accurate than a small fully connected network on {draft.name(dataset)}",
            above(
                "",
                ("M-CovJac", values[m, dataset]),
                (METHOD_NAMES["mlp-6x128"], values["mlp-6x128", dataset]),
                (block[m, dataset], block["mlp-6x128", dataset]),
            ),
            id=f"circuit-beats-mlp-{dataset}",
        )
    if draft.scale == "small":
        draft.note(
            "Small scale: one convolutional network, on MNIST, for 6,000 steps of 16 samples with one seed; the others "
            "are too slow for it. Circuits and fully connected networks train for the usual steps."
        )
    if draft.scale == "paper":
        draft.note("The paper's counts of its MLPs are those of MNIST; on CIFAR-10 they read 95,232 bits.")


def _sizes(draft: Draft) -> None:
    """What each network needs on MNIST at the paper's size: counted, beside what the paper prints."""
    rows = []
    for name in BASELINES:
        size = baseline_size(name)
        cells = [
            Cell(Value(float(value), unit=""), theirs)
            for value, theirs in zip((size.parameters, size.multiplications), SIZES[name], strict=True)
        ]
        rows.append((METHOD_NAMES[name], [*cells, Cell(Value(4.0 * size.parameters / 1000, unit="KB"))]))
    setting = SETTINGS["paper"]["mnist"]
    circuit = circuit_size(784, setting.width, 6)
    theirs = SIZES["multilinear-covjac"]
    note = f"{circuit.wiring_bytes / 1000:,.0f} KB more for the wiring"
    cells = [
        Cell(Value(float(circuit.parameters), unit=""), theirs[0]),
        Cell(Value(0.0, unit=""), theirs[1]),
        Cell(Value(circuit.gate_bytes / 1000, unit="KB"), CIRCUIT_SIZE.replace("\\,", " "), note),
    ]
    rows.append((f"{METHOD_NAMES['multilinear-covjac']}, 6 × {width_name(setting.width)}", cells))
    columns = ("parameters in training", "multiplications a sample", "stored when deployed")
    draft.table("Sizes on MNIST, counted", columns, rows, digits=0, best="none")
    draft.note("Stored: four bytes a parameter; of a circuit four bits a gate, its wiring apart.")
    colour = {name: baseline_size(name, bits=95_232, side=32).parameters for name in ("cnn-2x2-6", "cnn-3x3-6")}
    words = listed([f"{METHOD_NAMES[name]} {count:,}" for name, count in colour.items()])
    draft.note(f"The paper's counts of its six convolutions are those of CIFAR-10's 93 planes: {words} parameters.")


EXPERIMENTS: tuple[Experiment, ...] = (
    experiment("tab:cifar-full", "CIFAR-10: accuracy and gaps", show_cifar, small_seeds=(0, 1)),
    experiment("tab:scale-up", "Larger data sets and widths", show_scale_up),
    experiment("tab:mlp-cnn-baseline", "Floating-point baselines on the same bits", show_baselines),
    experiment("tab:wiring-ablation", "Five wirings", show_wiring),
)

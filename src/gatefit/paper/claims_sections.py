"""The claims of the paper's experimental sections and appendices, each with what bears on it."""

from typing import Final

from gatefit.paper.claims import Cited, Claim, Opinion
from gatefit.paper.claims_headline import LOW_TEMPERATURE, TWO_PRECISIONS

_CROSS: Final = "Section 5.1: cross-dataset comparison"
_DEPTH: Final = "Section 5.2: depth and ablation"
_COST: Final = "Section 5.3: cost, width and interaction demand"
_DIAGNOSTICS: Final = "Section 5.4: diagnostics and controls"
_APPENDIX: Final = "Appendices"

SECTIONS: Final = (
    Claim(
        _CROSS,
        "CovJac is the best method on all seven data sets, by last-10 accuracy and by best checkpoint.",
        checks=(
            Cited("tab:mnist-main", "best-everywhere"),
            Cited("tab:best-acc", "best-everywhere"),
            Cited("extra:monks-methods", "best-of-seven"),
            Cited("extra:class-scores", "best"),
            Cited("extra:mnist-64k"),
            Cited("extra:cifar10-128k"),
        ),
    ),
    Claim(
        _CROSS,
        "On CIFAR-10 and CIFAR-100 STE falls below even Soft-Mix (56.02 and 24.02 against 58.13 and 27.92 %).",
        checks=(
            Cited("tab:mnist-main", "ste-below-soft-mix"),
            Cited("tab:cifar-full", "ste-worst"),
            Cited("extra:monks-methods", "ste-behind-soft-mix"),
        ),
    ),
    Claim(
        _CROSS,
        "A sign test over seven data sets gives p < 0.01, and the gap on CIFAR-10 is significant by itself (p = "
        "0.013).",
        checks=(Cited("app:significance", "cifar10", "sign-test"),),
    ),
    Claim(
        _CROSS,
        "The methods rank the same by last-10 and by best checkpoint.",
        checks=(Cited("tab:best-acc", "ranking"),),
    ),
    Claim(
        _DEPTH,
        "From 6 to 12 layers Soft-Mix loses 15.4 points on MNIST, and more than any other method on every data set.",
        checks=(
            Cited("tab:depth", "soft-mix-loses-most-mnist"),
            Cited("tab:adult-depth", "soft-mix-loses-most-adult"),
            Cited("tab:cifar-depth", "soft-mix-loses-most-cifar10"),
            Cited("tab:cifar100-depth", "soft-mix-loses-most-cifar100"),
        ),
    ),
    Claim(
        _DEPTH,
        "On CIFAR-100 Soft-Mix falls by 23.3 points from 6 to 12 layers and CovJac by 0.76; on Adult by 0.04.",
        checks=(
            Cited("tab:cifar100-depth", "soft-mix-collapses-cifar100"),
            Cited("tab:cifar100-depth", "covjac-holds-cifar100"),
            Cited("tab:adult-depth", "covjac-holds-adult"),
        ),
    ),
    Claim(
        _DEPTH,
        "CovJac is the best method at every depth.",
        checks=tuple(
            Cited(label, "best-everywhere")
            for label in ("tab:depth", "tab:adult-depth", "tab:cifar-depth", "tab:cifar100-depth")
        ),
    ),
    Claim(
        _DEPTH,
        "Twice the steps recover a part of Soft-Mix's loss and leave it 6 points below: the penalty is structural.",
        checks=(Cited("tab:depth-100k"),),
    ),
    Claim(
        _DEPTH,
        "The basis matters under STE: M-STE is ahead of IWP-STE by 17.25 points on MNIST, 22.65 on CIFAR-10, 8.50 on "
        "Adult.",
        checks=(
            Cited("tab:ablation", "basis-mnist", "basis-cifar10", "basis-adult"),
            Cited("tab:basis-constraint-main", "basis-by-far"),
            Cited("tab:basis-constraint-depth", "lead-grows", "iwp-ste-collapses"),
            Cited("extra:mnist-8k-basis"),
            Cited("extra:as-written"),
            Cited("extra:monks-methods", "basis"),
        ),
        remark="IWP-STE is the paper's construction for this ablation, with an L2 snap: here each corner weight goes "
        "to the nearer of 0 and 1, and its gradient passes unchanged.",
        opinion=Opinion(
            "our reading",
            "The paper defines one snap, onto the codebook, and speaks of a derivative by continuous coefficients. A "
            "corner basis that is read so is another method than ours, and the one that may show the effect.",
        ),
    ),
    Claim(
        _DEPTH,
        "In the same basis CovJac is ahead of STE by 0.21 points on MNIST, and without the snap it is as accurate as "
        "with it.",
        checks=(Cited("tab:ablation", "covjac-beats-ste", "free-as-accurate"),),
    ),
    Claim(
        _DEPTH,
        "Without the snap the two bases are comparable at 6 layers, and at 12 the ranking reverses (92.95 against "
        "97.80 %).",
        checks=(
            Cited("tab:basis-constraint-main", "free-comparable"),
            Cited("tab:basis-constraint-depth", "free-reverses", "one-layer-alike"),
        ),
    ),
    Claim(
        _COST,
        "M-STE is 25 times cheaper to train than Soft-Mix, with a quarter of the optimiser's memory.",
        checks=(Cited("tab:cost", "naive-factor", "four-parameters", "soft-mix-shared"),),
        remark="The factor is against evaluating all sixteen gates for every sample. A mixture's coefficients do not "
        "depend on the sample, so Soft-Mix too can be trained with one polynomial a gate, as it is here.",
    ),
    Claim(
        _COST,
        "With width CovJac's error decays 61 % faster than Soft-Mix's (exponent 0.42 against 0.26 at one layer).",
        checks=(
            Cited("tab:scaling-exponents"),
            Cited("tab:width-scaling", "gap-widens", "ahead-at-largest", "ahead-at-smallest"),
        ),
    ),
    Claim(
        _COST,
        "At the same number of parameters CovJac, four times as wide, is ahead by 3.3 points at one layer.",
        checks=(Cited("tab:param-budget"),),
    ),
    Claim(
        _COST,
        "The deficit of STE against Soft-Mix correlates with CovJac's advantage (Pearson r = 0.85).",
        checks=(Cited("tab:starvation-severity", "pearson"),),
    ),
    Claim(
        _COST,
        "The advantage persists at larger scale: CIFAR-100 with 1,280,000 and Tiny-ImageNet with 2,560,000 gates a "
        "layer.",
        checks=(Cited("tab:scale-up"),),
    ),
    Claim(
        _DIAGNOSTICS,
        "The ratio of the gradient norms of c_ab and c_0 stays near 0.227 under STE and reaches 14.27 under CovJac; "
        "STE commits fast (std of c_ab 50.7), CovJac slowly (5.9), Soft-Mix never (1.1).",
        checks=(Cited("fig:commitment"), Cited("app:gradnorm")),
        remark="The paper gives 14.27 in its text and 7.3 in its appendix for the same ratio. It averages over the "
        "minibatches of a window; we use a fixed probe, so that a resumed run measures the same.",
        opinion=Opinion(
            "paper",
            "The paper names the L2 norm, whose ratio tends to 1/2 where signs vary; its value of about 1/4 is that of "
            "absolute values.",
            ("quarter", "ten-times"),
        ),
    ),
    Claim(
        _DIAGNOSTICS,
        "At initialisation with 12 layers Soft-Mix keeps 0.29 of its signal in each layer, M-STE 1.0 and CovJac 0.993.",
        checks=(Cited("fig:cancellation"), Cited("extra:survival")),
        opinion=LOW_TEMPERATURE,
    ),
    Claim(
        _DIAGNOSTICS,
        "CovJac chooses the most strong-interaction gates (26 to 36 %) and the fewest constants (below 0.5 %).",
        checks=(Cited("fig:codebook-neurons"), Cited("fig:gate-selection")),
    ),
    Claim(
        _DIAGNOSTICS,
        "Controls: Hard-ST survives depth but not starvation; Walsh (94.92 %) and smoothed (10.14 %) bases fail.",
        checks=(Cited("sec:controls"), Cited("tab:ste-basis-catalogue"), Cited("extra:mnist-8k-bases")),
    ),
    Claim(
        _APPENDIX,
        "What is done once a batch costs less than 0.4 operations a sample at 512 samples, for every method.",
        checks=(Cited("tab:cost", "batch-overhead"),),
    ),
    Claim(
        _APPENDIX,
        "The discretisation gap is zero for M-STE and at most 0.2 points for CovJac (1 on MONK's-2).",
        checks=(
            Cited("app:gap-decomp"),
            Cited("tab:cifar-full", "gap"),
            Cited("tab:method-summary"),
        ),
        opinion=TWO_PRECISIONS,
    ),
    Claim(
        _APPENDIX,
        "In Soft-Mix entropy falls first near the output, and at 12 layers early layers stay near its maximum.",
        checks=(Cited("app:entropy"),),
    ),
    Claim(
        _APPENDIX,
        "CovJac is not brittle in its temperature (within 0.22 points of the peak from 0.3 to 5), and learning the "
        "temperature does not help.",
        checks=(Cited("tab:tau-sensitivity"),),
    ),
    Claim(
        _APPENDIX,
        "The wiring is not the bottleneck: five random wirings vary by 0.28 points.",
        checks=(Cited("tab:wiring-ablation"),),
    ),
    Claim(
        _APPENDIX,
        "On the same bits a CNN is ahead of the gates (by 16.2 points on CIFAR-10): the cost is that of two-input "
        "gates.",
        checks=(Cited("tab:mlp-cnn-baseline"),),
    ),
)

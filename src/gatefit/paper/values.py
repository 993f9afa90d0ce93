"""The paper's own numbers, by label: the only results in gatefit that are typed in.

    block[row, column] -> Value       mean ± standard deviation over the paper's three seeds, where it gives one

A block is written as in the paper: a line of column names, then a line a row; "-" is an empty cell, a column's unit
stands in brackets (default: per cent). Numbers that the paper states in its text are blocks under the nearest label.
"""

from dataclasses import dataclass
from functools import cache
from typing import Final

from gatefit.paper.outcome import Value

PAPER_SEEDS: Final = 3

_BLOCKS: Final[dict[str, str]] = {
    # Stated in the text, beside a table or section.
    "app:basis-futility": """
                    mnist-8k
    canonical       96.65
    walsh           86.86
    smoothed        76.95
    expected-value  13.30
    uniform         12.42
    """,
    "tab:depth/corollary": """
                        12
    soft-mix            84.92
    gumbel-st           97.81
    multilinear-ste     98.03
    multilinear-covjac  98.23
    """,
    "tab:adult-depth/tau-1": """
                        6      loss[pp]
    multilinear-covjac  84.57  1.08
    """,
    "app:tau/learned": """
               lowest[]  highest[]
    by-layer   0.01      0.03
    """,
    "app:gradnorm/covjac": """
             uniform[]  first[]  floor[]
    ratio    4          1        0.8
    """,
    # Tables.
    "tab:mnist-main": """
                        adult      splice     monks-2     mnist      svhn       cifar10    cifar100
    soft-mix            84.68±.07  97.01±.11  81.32±1.09  98.29±.04  68.21±.08  58.13±.12  27.92±.43
    gumbel-st           84.69±.06  96.81±.30  81.46±.89   98.17±.07  66.12±.38  58.24±.25  27.72±.40
    multilinear-ste     84.91±.01  97.07±.00  78.53±1.25  98.09±.02  66.69±.11  56.02±.23  24.02±.17
    multilinear-covjac  84.93±.03  97.20±.23  86.06±2.17  98.30±.04  68.91±.13  58.97±.26  28.37±.22
    """,
    "tab:best-acc": """
                        adult      splice     monks-2     mnist      svhn       cifar10    cifar100
    soft-mix            85.01±.03  97.40±.09  82.20±.96   98.32±.03  68.37±.07  58.32±.05  28.21±.38
    gumbel-st           85.01±.08  97.20±.09  82.46±1.07  98.21±.08  67.06±.28  58.08±.19  28.08±.33
    multilinear-ste     85.11±.04  97.72±.09  79.34±1.05  98.15±.02  67.01±.18  56.95±.06  25.02±.16
    multilinear-covjac  85.13±.03  97.53±.24  87.15±1.92  98.36±.03  69.19±.18  59.18±.26  28.91±.14
    """,
    "tab:ablation": """
                        mnist       step[pp]
    iwp-ste             80.84±2.62  -
    multilinear-ste     98.09±0.02  +17.25
    multilinear-covjac  98.30±0.04  +0.21
    soft-mix            98.29±0.04  -0.01
    iwp                 77.95±2.60  -
    multilinear-free    98.06±0.11  -
    """,
    "sec:ablation": """
            mnist[pp]  mnist-8k[pp]  cifar10[pp]  adult[pp]
    basis   17.25      22            22.65        8.50
    """,
    "tab:depth": """
                        3          6          9          12
    soft-mix            97.80±.03  98.29±.04  97.34±.16  82.94±2.85
    gumbel-st           97.80±.01  98.22±.04  98.19±.03  97.89±.03
    multilinear-ste     97.68±.04  98.04±.06  98.01±.06  97.99±.05
    multilinear-covjac  97.84±.03  98.29±.04  98.31±.06  98.28±.06
    """,
    "tab:depth/best": """
                        3          6          9          12
    soft-mix            97.88±.02  98.33±.03  97.49±.10  86.58±2.16
    gumbel-st           97.86±.01  98.27±.03  98.24±.04  97.98±.06
    multilinear-ste     97.77±.04  98.15±.05  98.13±.03  98.08±.04
    multilinear-covjac  97.89±.05  98.36±.04  98.35±.05  98.34±.08
    """,
    "tab:depth-100k": """
                        50k         100k
    soft-mix            82.94±2.85  92.08±0.45
    gumbel-st           97.89±0.03  98.04±0.05
    multilinear-ste     97.99±0.05  98.05±0.11
    multilinear-covjac  98.30±0.07  98.26±0.07
    """,
    "tab:adult-depth": """
                        3          6          9          12
    soft-mix            84.80±.04  84.68±.05  84.65±.05  82.36±.84
    gumbel-st           84.83±.02  84.75±.02  84.70±.07  84.57±.10
    multilinear-ste     84.99±.03  84.90±.05  84.70±.06  84.58±.02
    multilinear-covjac  84.47±.02  84.93±.03  84.98±.04  84.91±.08
    """,
    "tab:adult-depth/best": """
                        3          6          9          12
    soft-mix            84.90±.01  85.01±.03  84.96±.02  83.37±.79
    gumbel-st           84.97±.05  85.01±.01  84.97±.02  84.93±.09
    multilinear-ste     85.08±.03  85.13±.03  85.08±.03  85.07±.06
    multilinear-covjac  84.51±.02  84.96±.02  85.10±.05  85.04±.06
    """,
    "tab:cifar-depth": """
                        3          6          9          12
    soft-mix            57.37±.19  58.13±.12  54.76±.20  20.79±.21
    gumbel-st           57.00±.41  58.24±.25  56.42±.05  51.66±.18
    multilinear-ste     56.51±.21  56.02±.23  54.66±.08  53.34±.21
    multilinear-covjac  57.44±.26  58.97±.26  58.41±.12  58.44±.18
    """,
    "tab:cifar-depth/best": """
                        3          6          9          12
    soft-mix            57.60±.24  58.31±.09  55.06±.18  22.98±.18
    gumbel-st           57.29±.35  58.47±.33  56.92±.13  53.49±.52
    multilinear-ste     56.85±.25  56.53±.12  55.64±.20  55.08±.25
    multilinear-covjac  57.75±.25  59.18±.26  58.88±.13  58.75±.29
    """,
    "tab:cifar100-depth": """
                        3          6          9          12
    soft-mix            27.33±.17  27.92±.43  24.83±.24  4.59±.46
    gumbel-st           27.11±.23  27.72±.40  27.16±.07  26.20±.27
    multilinear-ste     25.30±.21  24.02±.17  22.60±.09  20.83±.13
    multilinear-covjac  26.98±.22  28.37±.22  27.74±.18  27.61±.19
    """,
    "tab:cifar100-depth/best": """
                        3          6          9          12
    soft-mix            27.58±.20  28.21±.38  25.13±.17  5.25±.74
    gumbel-st           27.40±.17  28.08±.33  27.54±.14  26.44±.25
    multilinear-ste     25.71±.22  25.02±.16  24.29±.12  23.97±.13
    multilinear-covjac  27.24±.20  28.91±.14  28.30±.15  28.15±.18
    """,
    "tab:basis-constraint-main": """
                        mnist
    multilinear-ste     97.98±0.11
    iwp-ste             82.94±1.59
    multilinear-free    98.11±0.04
    iwp-free            98.37±0.04
    iwp                 77.95±2.60
    """,
    "tab:basis-constraint-depth": """
                        1           6           12
    multilinear-ste     95.59±0.09  97.98±0.11  98.03±0.10
    iwp-ste             95.31±0.13  82.94±1.59  42.76±2.73
    multilinear-free    95.03±0.11  98.11±0.04  92.95±0.27
    iwp-free            95.40±0.10  98.37±0.04  97.80±0.13
    """,
    "tab:ste-basis-catalogue": """
                    mnist
    canonical       98.11±0.03
    walsh           94.92±0.01
    smoothed        10.14±2.63
    expected-value  13.30
    uniform         12.42
    """,
    "sec:controls": """
                        mnist       cifar10
    hard-st             98.11       57.39
    walsh               94.92       -
    smoothed            10.14       -
    """,
    "tab:width-scaling": """
              soft-mix    gumbel-st   multilinear-ste  multilinear-covjac
    1/8000    91.89±0.03  91.73±0.03  91.39±0.10       91.62±0.13
    1/16000   93.22±0.10  93.15±0.13  93.25±0.05       93.48±0.02
    1/32000   94.56±0.15  94.72±0.08  95.10±0.08       95.14±0.05
    1/64000   95.24±0.13  95.98±0.15  96.46±0.08       96.51±0.09
    3/8000    95.96±0.05  95.90±0.11  95.33±0.06       96.12±0.02
    3/16000   97.06±0.08  96.87±0.13  96.39±0.05       97.09±0.07
    3/32000   97.43±0.16  97.45±0.05  97.32±0.04       97.72±0.04
    3/64000   97.66±0.09  97.41±0.07  97.69±0.04       97.91±0.09
    6/8000    97.31±0.01  97.09±0.05  96.59±0.09       97.37±0.01
    6/16000   97.77±0.09  97.63±0.06  97.35±0.04       97.68±0.03
    6/32000   97.94±0.06  97.89±0.05  97.57±0.10       98.13±0.07
    6/64000   98.07±0.04  98.02±0.12  98.00±0.04       98.21±0.07
    """,
    "tab:scaling-exponents": """
                        alpha[]  B[]  predicted
    soft-mix            0.262    85   3.25
    gumbel-st           0.350    196  2.52
    multilinear-ste     0.431    424  1.98
    multilinear-covjac  0.422    378  1.98
    """,
    "tab:param-budget": """
            multilinear-covjac  soft-mix
    1/32000 95.14               91.89
    1/64000 96.51               93.22
    3/32000 97.72               95.96
    3/64000 98.21               97.06
    6/32000 98.13               97.31
    6/64000 98.21               97.77
    """,
    "tab:cifar-full": """
                        accuracy    discretisation[pp]  generalisation[pp]
    soft-mix            58.13±0.12  0.000               41.85
    gumbel-st           57.91±0.28  0.000               42.08
    multilinear-ste     56.02±0.23  0.000               43.33
    multilinear-covjac  58.97±0.26  0.071               40.96
    """,
    "tab:scale-up": """
                           soft-mix   gumbel-st  multilinear-ste  multilinear-covjac
    cifar100/256000        27.92±.43  27.72±.40  24.02±.17        28.37±.22
    cifar100/1280000       30.56±.31  31.65±.20  27.70±.31        32.72±.09
    tiny-imagenet/512000   7.46±.20   7.41±.05   6.49±.08         8.01±.13
    tiny-imagenet/2560000  9.18±.04   9.10±.21   8.57±.02         10.43±.12
    """,
    "tab:scale-up/best": """
                           soft-mix   gumbel-st  multilinear-ste  multilinear-covjac
    cifar100/256000        28.21±.38  28.08±.33  25.02±.16        28.91±.14
    cifar100/1280000       30.87±.26  31.88±.17  29.77±.13        32.88±.08
    tiny-imagenet/512000   7.74±.12   7.67±.08   7.57±.10         8.25±.17
    tiny-imagenet/2560000  9.43±.06   9.44±.29   9.26±.13         10.64±.13
    """,
    "tab:h7-cross-dataset": """
             soft-mix    gumbel-st   multilinear-ste  multilinear-covjac  gap[pp]
    splice   97.01±0.11  96.81±0.30  97.07±0.00       97.20±0.23          +0.13
    monks-2  81.32±1.09  81.46±0.89  78.53±1.25       86.06±2.17          +7.53
    """,
    "tab:starvation-severity": """
              starvation[pp]  advantage[pp]  ratio[×]
    adult     -0.23           +0.02          -
    splice    -0.06           +0.13          -
    mnist     +0.20           +0.21          1.05
    svhn      +1.52           +2.22          1.46
    cifar10   +2.11           +2.95          1.40
    cifar100  +3.90           +4.35          1.12
    monks-2   +2.79           +7.53          2.70
    """,
    "app:interaction-demand": """
           pearson[]
    all    0.85
    """,
    "app:significance": """
             t[]   p[]
    cifar10  8.70  0.013
    monks-2  -     0.052
    """,
    "tab:tau-sensitivity": """
           mnist
    0.1    96.99
    0.3    98.11
    0.5    98.17
    1.0    98.30
    2.0    98.33
    5.0    98.23
    10.0   98.08
    """,
    "app:tau": """
               adult  mnist  cifar10
    0.1        84.93  -      -
    1.0        84.57  98.30  58.97
    learnable  84.90  98.03  56.12±0.84
    """,
    "tab:wiring-ablation": """
             mean        lowest  highest
    cifar10  58.56±0.28  58.04   58.90
    """,
    "tab:mlp-cnn-baseline": """
                        mnist       cifar10
    mlp-3x64            96.95±0.04  12.28±1.68
    mlp-6x128           97.63±0.07  28.26±1.63
    cnn-3x3-3           98.86±0.06  -
    cnn-2x2-6           98.90±0.07  75.13±0.83
    cnn-3x3-6           99.43±0.00  79.75±0.90
    multilinear-covjac  98.30±0.04  58.97±0.26
    """,
    "tab:cost": """
                        parameters[]  train[ops]  deploy[ops]  memory[floats]
    soft-mix            16            175         7            48
    gumbel-st           16            175         7            48
    multilinear-ste     4             7           7            12
    multilinear-covjac  4             7           7            12
    """,
    "tab:method-summary": """
                        parameters[]
    soft-mix            16
    gumbel-st           16
    iwp                 4
    iwp-ste             4
    multilinear-ste     4
    multilinear-covjac  4
    """,
    "tab:ste-enumeration": """
                  c_a[]  c_ab[]  b=0[]  b=1[]
    A             1      0       1      1
    NOT_A         -1     0       -1     -1
    AND           0      1       0      1
    NAND          0      -1      0      -1
    OR            1      -1      1      0
    NOR           -1     1       -1     0
    XOR           1      -2      1      -1
    XNOR          -1     2       -1     1
    A_AND_NOT_B   1      -1      1      0
    NOT_A_AND_B   0      -1      0      -1
    A_OR_NOT_B    0      1       0      1
    NOT_A_OR_B    -1     1       -1     0
    """,
    "fig:commitment": """
                        ratio[]  std[]
    soft-mix            -        1.1
    multilinear-ste     0.227    50.7
    multilinear-covjac  14.27    5.9
    """,
    "fig:cancellation": """
                        survival[]
    soft-mix            0.29
    multilinear-ste     1.0
    multilinear-covjac  0.993
    """,
    "fig:codebook-neurons": """
                        adult  mnist  cifar10
    soft-mix            -      -      17.8
    multilinear-ste     -      -      20.7
    multilinear-covjac  36.2   27.2   25.7
    """,
    "fig:gate-selection": """
                        std[]  largest[]
    multilinear-ste     52.6   240
    multilinear-covjac  5.9    -
    """,
    "app:gradnorm": """
                        lowest[]  highest[]  mean[]
    multilinear-ste     0.19      0.25       0.227
    multilinear-covjac  -         -          7.3
    """,
}

TEXT: Final[dict[str, str]] = {
    "app:depth-h6": """
             text[pp]  appendix[pp]  floor
    adult    0.04      0.02          -
    cifar10  -         -             58
    """,
    "app:width-scaling": """
                        k[k]  M[M]
    multilinear-covjac  230   -
    soft-mix            -     2.1
    """,
    "app:cost": """
                        distances[ops]  softmax[ops]  mixture[ops]  together[ops]
    multilinear-covjac  120             47            30            200
    """,
    "app:codebook-neurons": """
            strong-least  strong-most  constant-least  constant-most
    others  16            21           4               10
    """,
}
"""What a section states in its text, by the label of the section."""

SIZES: Final[dict[str, tuple[str, str]]] = {
    "mlp-3x64": ("59k", "59k MACs"),
    "mlp-6x128": ("184k", "184k MACs"),
    "cnn-3x3-3": ("94k", "2M MACs"),
    "cnn-2x2-6": ("712k", "10M MACs"),
    "cnn-3x3-6": ("1.60M", "30M MACs"),
    "multilinear-covjac": ("1.54M", "0 MACs"),
}
"""Parameters in training and operations at inference as tab:mlp-cnn-baseline prints them."""
CIRCUIT_SIZE: Final = "192\\,KB"
"""The gates' types of the deployed circuit, 4 bits each, as the paper prints it (MNIST, 6 × 64,000)."""


@dataclass(frozen=True)
class Block:
    """One table of the paper."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: dict[tuple[str, str], Value]

    def __getitem__(self, place: tuple[object, object]) -> Value | None:
        """The paper's value at (row, column), None where it gives none; names may be numbers."""
        return self.values.get((str(place[0]), str(place[1])))


@cache
def paper(label: str) -> Block:
    """The block of a label; a label with "/best" holds the best-checkpoint accuracies of the same table."""
    header, *lines = (line.split() for line in (_BLOCKS | TEXT)[label].strip().splitlines())
    names = [name.partition("[")[0] for name in header]
    units = [name.partition("[")[2].rstrip("]") if "[" in name else "%" for name in header]
    values = {}
    for row, *cells in lines:
        for name, unit, cell in zip(names, units, cells, strict=True):
            if cell != "-":
                mean, _, std = cell.partition("±")
                spread = float(std) if std else None
                values[row, name] = Value(float(mean), spread, PAPER_SEEDS if std else 1, unit)
    return Block(tuple(row for row, *_ in lines), tuple(names), values)


def paper_number(label: str, row: object, column: object) -> float:
    """The paper's number at a place that has one."""
    value = paper(label)[row, column]
    if value is None:
        raise ValueError(f"the paper's {label} has no value at ({row}, {column})")
    return value.mean


def paper_labels() -> tuple[str, ...]:
    """Every label with a block."""
    return tuple(_BLOCKS | TEXT)

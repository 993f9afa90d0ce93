"""Numbers that the paper states beside its tables, in sections, proofs and footnotes: blocks of ``paper_values``."""

from typing import Final

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
"""By the label of the section."""

TEXT_BLOCKS: Final[dict[str, str]] = {
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
}
"""By the label of the table or section that they stand beside."""

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

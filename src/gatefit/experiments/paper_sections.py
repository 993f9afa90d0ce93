"""Numbers that the paper states in its text alone, in the form of ``paper_values``; labels are those of sections."""

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

"""What the image sets share: flattening, and thresholds equally spaced over the range of a byte.

bit_k,i = x_i > 255 · k / (thresholds + 1)        planes k = 1 … thresholds of (channel, row, column)
"""

import numpy as np
from jaxtyping import UInt8

from gatefit.encoders import Encoder, Thermometer, Threshold


def flatten_images(
    images: UInt8[np.ndarray, "samples rows columns channels"],
) -> UInt8[np.ndarray, "samples features"]:
    """Images with the channels last, flattened to one row each in (channel, row, column) order."""
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2)).reshape(len(images), -1)


def image_encoder(x: UInt8[np.ndarray, "samples features"], thresholds: int, high: float = 255) -> Encoder:
    """The paper's encoder: one threshold at half the range, or planes of several."""
    if thresholds == 1:
        return Threshold(high / 2).fit(x)
    return Thermometer(thresholds, order="threshold", low=0, high=high).fit(x)

"""provisional"""

import torch

Adam = torch.optim.AdamW

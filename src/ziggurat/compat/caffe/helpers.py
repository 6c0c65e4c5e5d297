"""Helpers that a network file holds where its layers need them: Caffe's fillers, and layers that PyTorch has not."""

from __future__ import annotations

from typing import Final

__all__ = ["HELPERS"]

_FAN = """
    fans = {"fan_in": tensor.numel() / tensor.shape[0], "fan_out": tensor.numel() / tensor.shape[1]}
    fans["average"] = (fans["fan_in"] + fans["fan_out"]) / 2
"""

HELPERS: Final = {
    "xavier": f'''
def xavier(tensor, norm="fan_in"):
    """Fill weights uniformly, as Caffe's `xavier`: a variance of 1 / fan."""{_FAN.rstrip()}
    nn.init.uniform_(tensor, -((3 / fans[norm]) ** 0.5), (3 / fans[norm]) ** 0.5)
''',
    "msra": f'''
def msra(tensor, norm="fan_in"):
    """Fill weights normally, as Caffe's `msra`: a variance of 2 / fan."""{_FAN.rstrip()}
    nn.init.normal_(tensor, 0.0, (2 / fans[norm]) ** 0.5)
''',
    "bilinear": '''
def bilinear(tensor):
    """Fill the kernels of a deconvolution so that it interpolates."""
    side = tensor.shape[-1]
    half = (side + 1) // 2
    center = (2 * half - 1 - half % 2) / (2 * half)
    line = 1 - (torch.arange(side) / half - center).abs()
    with torch.no_grad():
        tensor.copy_((line[:, None] * line[None, :]).expand_as(tensor))
''',
    "BatchNorm": '''
class BatchNorm(nn.BatchNorm2d):
    """Batch normalization without factors; its mean over the past is right from the first step, as Caffe's."""

    def __init__(self, channels, eps=1e-05, fraction=0.999):
        super().__init__(channels, eps=eps, affine=False)
        self.fraction = fraction

    def _check_input_dim(self, x):
        pass  # images, and rows of numbers

    def forward(self, x):
        if self.training:
            steps = int(self.num_batches_tracked) + 1
            past = steps if self.fraction == 1 else (1 - self.fraction**steps) / (1 - self.fraction)
            self.momentum = 1 / past  # the first step counts in full
        return super().forward(x)
''',
    "Scale": '''
class Scale(nn.Module):
    """Factors along some axes, and a bias where it is wanted."""

    def __init__(self, shape, axis=1, bias=False):
        super().__init__()
        self.axis = axis
        self.weight = nn.Parameter(torch.ones(shape))
        self.bias = nn.Parameter(torch.zeros(shape)) if bias else None

    def forward(self, x):
        shape = (1,) * self.axis + self.weight.shape + (1,) * (x.ndim - self.axis - self.weight.ndim)
        x = x * self.weight.view(shape)
        return x if self.bias is None else x + self.bias.view(shape)
''',
    "Bias": '''
class Bias(nn.Module):
    """A bias along some axes."""

    def __init__(self, shape, axis=1):
        super().__init__()
        self.axis = axis
        self.bias = nn.Parameter(torch.zeros(shape))

    def forward(self, x):
        shape = (1,) * self.axis + self.bias.shape + (1,) * (x.ndim - self.axis - self.bias.ndim)
        return x + self.bias.view(shape)
''',
    "rate": '''
def rate(table, name, usual=1.0):
    """Return what a table says of an array: by its whole name, or of all weights or biases."""
    return table.get(name, table.get(name.rpartition(".")[2], usual))
''',
}
"""Name → its lines."""

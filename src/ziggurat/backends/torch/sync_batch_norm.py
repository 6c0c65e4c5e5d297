"""Batch norms whose statistics are those of the rows of all devices."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from ziggurat.backends.torch.device_group import DeviceGroup

__all__ = ["synchronize_batch_norms"]

_KINDS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)


def synchronize_batch_norms(module: nn.Module, group: DeviceGroup) -> None:
    """Let the batch norms of a network normalize by mean and variance over the rows of all processes.

    In validation, and in what a checkpoint holds, they are what they were.

    Args:
        module: the network.
        group: the processes.
    """
    for each in module.modules():
        if type(each) in _KINDS:
            each.forward = partial(_normalized, each, group)


def _normalized(layer: Any, group: DeviceGroup, x: torch.Tensor) -> torch.Tensor:
    if not layer.training:
        return type(layer).forward(layer, x)
    layer._check_input_dim(x)
    y, mean, variance, count = _Normalize.apply(x, layer.weight, layer.bias, layer.eps, group)  # pyright: ignore[reportGeneralTypeIssues]
    if layer.track_running_stats:
        layer.num_batches_tracked.add_(1)
        share = layer.momentum if layer.momentum is not None else 1.0 / float(layer.num_batches_tracked)
        with torch.no_grad():
            unbiased = variance * (count / (count - 1).clamp(min=1))
            layer.running_mean.lerp_(mean.to(layer.running_mean.dtype), share)
            layer.running_var.lerp_(unbiased.to(layer.running_var.dtype), share)
    return y


class _Normalize(torch.autograd.Function):
    """Batch normalization (Ioffe and Szegedy, ICML 2015) over the rows of several processes.

    With x̂ = (x − μ) / σ over m rows and pixels of all processes, ∂L/∂x = γ/σ · (g − (Σg + x̂ · Σ g x̂) / m), where the
    sums are over all processes as well.
    """

    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any, bias: Any, eps: float, group: DeviceGroup) -> Any:
        own = x.detach().float()
        axes = [axis for axis in range(x.ndim) if axis != 1]
        channels = x.shape[1]
        variance, mean = torch.var_mean(own, axes, correction=0)
        # A row for each process: means and variances of parts are put together without a loss of digits.
        table = torch.zeros(group.size, 2 * channels + 1, device=x.device)
        table[group.rank] = torch.cat([mean, variance, mean.new_tensor([own.numel() // channels])])
        group.add_up(table)
        counts = table[:, -1:]
        count = counts.sum()
        means, variances = table[:, :channels], table[:, channels:-1]
        mean = (counts * means).sum(0) / count
        variance = (counts * (variances + (means - mean) ** 2)).sum(0) / count
        scale = torch.rsqrt(variance + eps)
        ctx.save_for_backward(x, weight, mean, scale, count)
        ctx.group, ctx.axes = group, axes
        ctx.mark_non_differentiable(mean, variance, count)
        y = functional.batch_norm(
            x,
            mean,
            variance,
            weight,
            bias,
            training=False,
            eps=eps,
        )
        return y, mean, variance, count

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        x, weight, mean, scale, count = ctx.saved_tensors
        given = gradients[0].float()
        shape = [1, -1, *([1] * (x.ndim - 2))]
        normal = (x.float() - mean.view(shape)) * scale.view(shape)
        own = torch.stack([given.sum(ctx.axes), (given * normal).sum(ctx.axes)])
        sums = own.clone()
        ctx.group.add_up(sums)
        factor = scale if weight is None else scale * weight.float()
        of_x = factor.view(shape) * (given - (sums[0].view(shape) + normal * sums[1].view(shape)) / count)
        of_weight, of_bias = (None, None) if weight is None else (own[1].to(weight.dtype), own[0].to(weight.dtype))
        return of_x.to(x.dtype), of_weight, of_bias, None, None

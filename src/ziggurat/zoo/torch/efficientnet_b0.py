"""EfficientNet-B0 (Tan and Le, 2019): inverted residual blocks that weigh their channels (squeeze and excitation).

It is named and calculated as torchvision's, so that its published weights load. Images of at most 64 px are halved
three times and not five times; the weights are the same.
"""

# Expansion, kernel, stride of the first, width, blocks (table 1 of the paper).
STAGES = (
    (1, 3, 1, 16, 1),
    (6, 3, 2, 24, 2),
    (6, 5, 2, 40, 2),
    (6, 3, 2, 80, 3),
    (6, 5, 1, 112, 3),
    (6, 5, 2, 192, 4),
    (6, 3, 1, 320, 1),
)
DROPPED = 0.2  # share of the last block's results that a training step leaves out; earlier blocks lose fewer


def convolution(channels, width, kernel, stride=1, groups=1, activation=True):
    layer = nn.Conv2d(channels, width, kernel, stride, padding=kernel // 2, groups=groups, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(width), *([nn.SiLU()] if activation else []))


class SqueezeExcitation(nn.Module):
    """Multiply each channel by a weight from 0 to 1 that follows from the means of all channels."""

    def __init__(self, channels, squeezed):
        super().__init__()
        self.fc1 = nn.Conv2d(channels, squeezed, 1)
        self.fc2 = nn.Conv2d(squeezed, channels, 1)

    def forward(self, x):
        means = x.mean(dim=(2, 3), keepdim=True)
        return x * torch.sigmoid(self.fc2(F.silu(self.fc1(means))))


class Block(nn.Module):
    """Expand by 1x1, look around in each channel, weigh the channels, and project by 1x1."""

    def __init__(self, channels, expansion, kernel, stride, width, dropped):
        super().__init__()
        inner = expansion * channels
        layers = [convolution(channels, inner, 1)] if expansion > 1 else []
        layers.append(convolution(inner, inner, kernel, stride, groups=inner))
        layers.append(SqueezeExcitation(inner, channels // 4))
        layers.append(convolution(inner, width, 1, activation=False))
        self.block = nn.Sequential(*layers)
        self.has_shortcut = stride == 1 and channels == width
        self.dropped = dropped

    def forward(self, x):
        if not self.has_shortcut:
            return self.block(x)
        # Stochastic depth (Huang et al., 2016): a sample keeps the whole result of the block, or none of it.
        kept = F.dropout(x.new_ones(x.shape[0], 1, 1, 1), self.dropped, self.training)
        return x + kept * self.block(x)


class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        channels = input_shape[0]
        # Colors as in ImageNet, on the scale of 0 to 255; they are constants and no part of the weights.
        mean, std = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)) if channels == 3 else ((0.5,), (0.25,))
        self.register_buffer("mean", 255 * torch.tensor(mean).reshape(-1, 1, 1), persistent=False)
        self.register_buffer("std", 255 * torch.tensor(std).reshape(-1, 1, 1), persistent=False)
        is_small = max(input_shape[1:]) <= 64
        layers = [convolution(channels, 32, 3, 1 if is_small else 2)]
        channels, number, total = 32, 0, sum(blocks for *_, blocks in STAGES)
        for expansion, kernel, first, width, blocks in STAGES:
            stage = []
            for block in range(blocks):
                stride = first if block == 0 and not (is_small and width == 24) else 1
                stage.append(Block(channels, expansion, kernel, stride, width, DROPPED * number / total))
                channels, number = width, number + 1
            layers.append(nn.Sequential(*stage))
        layers.append(convolution(channels, 1280, 1))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, nclasses))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out")
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            elif isinstance(module, nn.Linear):
                nn.init.uniform_(module.weight, -(nclasses**-0.5), nclasses**-0.5)
                nn.init.zeros_(module.bias)

    def forward(self, x):
        x = self.features((x - self.mean) / self.std)
        return self.classifier(x.mean(dim=(2, 3)))

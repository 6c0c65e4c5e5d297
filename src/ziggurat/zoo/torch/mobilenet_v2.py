"""MobileNetV2 (Sandler et al., 2018): inverted residual blocks of depthwise convolutions.

It is named and calculated as torchvision's, so that its published weights load. Images of at most 64 px are halved
three times and not five times; the weights are the same.
"""

# Expansion, width, blocks, stride of the first (table 2 of the paper).
STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


def convolution(channels, width, kernel, stride=1, groups=1):
    layer = nn.Conv2d(channels, width, kernel, stride, padding=kernel // 2, groups=groups, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(width), nn.ReLU6())


class Block(nn.Module):
    """Expand by 1x1, look around in each channel by 3x3, and project by 1x1 without a nonlinearity."""

    def __init__(self, channels, expansion, width, stride):
        super().__init__()
        inner = expansion * channels
        layers = [convolution(channels, inner, 1)] if expansion > 1 else []
        layers.append(convolution(inner, inner, 3, stride, groups=inner))
        layers += [nn.Conv2d(inner, width, 1, bias=False), nn.BatchNorm2d(width)]
        self.conv = nn.Sequential(*layers)
        self.has_shortcut = stride == 1 and channels == width

    def forward(self, x):
        return x + self.conv(x) if self.has_shortcut else self.conv(x)


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
        channels = 32
        for number, (expansion, width, blocks, first) in enumerate(STAGES, start=1):
            for block in range(blocks):
                stride = first if block == 0 and not (is_small and number == 2) else 1
                layers.append(Block(channels, expansion, width, stride))
                channels = width
        layers.append(convolution(channels, 1280, 1))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, nclasses))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out")
            elif isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=0.01)
                nn.init.zeros_(module.bias)

    def forward(self, x):
        x = self.features((x - self.mean) / self.std)
        return self.classifier(x.mean(dim=(2, 3)))

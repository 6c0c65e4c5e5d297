"""EfficientNet-Lite0 (Google, 2020): EfficientNet-B0 without squeeze and excitation, and with ReLU6.

It calculates as TensorFlow's, which pads more below and to the right at stride 2, so that Google's weights load. Images
of at most 64 px are halved three times and not five times; the weights are the same.
"""

# Expansion, kernel, stride of the first, width, blocks.
STAGES = (
    (1, 3, 1, 16, 1),
    (6, 3, 2, 24, 2),
    (6, 5, 2, 40, 2),
    (6, 3, 2, 80, 3),
    (6, 5, 1, 112, 3),
    (6, 5, 2, 192, 4),
    (6, 3, 1, 320, 1),
)


class Convolution(nn.Conv2d):
    """A convolution without a bias, padded as TensorFlow's SAME."""

    def __init__(self, channels, width, kernel, stride=1, groups=1):
        padding = kernel // 2 if stride == 1 else 0
        super().__init__(channels, width, kernel, stride, padding, groups=groups, bias=False)

    def forward(self, x):
        if self.stride[0] == 1:
            return super().forward(x)
        height, width = (size % 2 + self.kernel_size[0] - 2 for size in x.shape[2:])
        return super().forward(F.pad(x, (width // 2, width - width // 2, height // 2, height - height // 2)))


def batch_norm(width):
    return nn.BatchNorm2d(width, eps=1e-3, momentum=0.01)


class Block(nn.Module):
    """Expand by 1x1, look around in each channel, and project by 1x1 without a nonlinearity."""

    def __init__(self, channels, expansion, kernel, stride, width):
        super().__init__()
        inner = expansion * channels
        self.expands = expansion > 1
        if self.expands:
            self.expand_conv, self.bn0 = Convolution(channels, inner, 1), batch_norm(inner)
        self.depthwise_conv, self.bn1 = Convolution(inner, inner, kernel, stride, groups=inner), batch_norm(inner)
        self.project_conv, self.bn2 = Convolution(inner, width, 1), batch_norm(width)
        self.has_shortcut = stride == 1 and channels == width

    def forward(self, x):
        y = F.relu6(self.bn0(self.expand_conv(x))) if self.expands else x
        y = F.relu6(self.bn1(self.depthwise_conv(y)))
        y = self.bn2(self.project_conv(y))
        return x + y if self.has_shortcut else y


class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        channels, is_small = input_shape[0], max(input_shape[1:]) <= 64
        self.conv_stem, self.bn0 = Convolution(channels, 32, 3, 1 if is_small else 2), batch_norm(32)
        channels, blocks = 32, []
        for expansion, kernel, first, width, count in STAGES:
            for number in range(count):
                stride = first if number == 0 and not (is_small and width == 24) else 1
                blocks.append(Block(channels, expansion, kernel, stride, width))
                channels = width
        self.blocks = nn.Sequential(*blocks)
        self.conv_head, self.bn1 = Convolution(channels, 1280, 1), batch_norm(1280)
        self.dropout, self.fc = nn.Dropout(0.2), nn.Linear(1280, nclasses)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out")
        nn.init.uniform_(self.fc.weight, -(nclasses**-0.5), nclasses**-0.5)
        nn.init.zeros_(self.fc.bias)

    def forward(self, x):
        x = F.relu6(self.bn0(self.conv_stem((x - 127) / 128)))
        x = F.relu6(self.bn1(self.conv_head(self.blocks(x))))
        return self.fc(self.dropout(x.mean(dim=(2, 3))))

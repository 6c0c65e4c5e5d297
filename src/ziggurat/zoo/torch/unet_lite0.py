"""A U-Net (Ronneberger et al., 2015) whose encoder is EfficientNet-Lite0.

The encoder has the names of `efficientnet_lite0`, so that Google's weights load. All that stands behind it is the head,
which is trained first where a training fine-tunes.
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
# Blocks whose maps go across to the decoder, with cells of 2 to 32 px, and their widths.
LEVELS = (0, 2, 4, 10, 15)
ENCODED = (16, 24, 40, 112, 320)
# Widths of the decoder, from the whole image to cells of 16 px.
DECODED = (16, 24, 32, 48, 96)


class Convolution(nn.Conv2d):
    """A convolution without a bias, padded as TensorFlow's SAME: more below and to the right at stride 2."""

    def __init__(self, channels, width, kernel, stride=1, groups=1):
        padding = kernel // 2 if stride == 1 else 0
        super().__init__(channels, width, kernel, stride, padding, groups=groups, bias=False)

    def forward(self, x):
        if self.stride[0] == 1:
            return super().forward(x)
        height, width = (size % 2 + self.kernel_size[0] - 2 for size in x.shape[2:])
        return super().forward(F.pad(x, (width // 2, width - width // 2, height // 2, height - height // 2)))


def batch_norm(width):
    return nn.BatchNorm2d(width, eps=1e-3)


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


class Layer(nn.Module):
    """A convolution with batch norm and ReLU."""

    def __init__(self, channels, width):
        super().__init__()
        self.conv, self.bn = Convolution(channels, width, 3), batch_norm(width)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)))


class Up(nn.Module):
    """Double both sides, and look at the map of the encoder that has that size."""

    def __init__(self, channels, across, width):
        super().__init__()
        self.widen, self.bn = nn.ConvTranspose2d(channels, width, 2, stride=2, bias=False), batch_norm(width)
        self.conv1, self.conv2 = Layer(width + across, width), Layer(width, width)
        nn.init.kaiming_normal_(self.widen.weight)

    def forward(self, net, across):
        # Sides are rounded up on the way down, so the enlarged map may have a row or column too many.
        net = F.relu(self.bn(self.widen(net)))[:, :, : across.shape[2], : across.shape[3]]
        return self.conv2(self.conv1(torch.cat([across, net], dim=1)))


class Head(nn.Module):
    """The decoder."""

    def __init__(self, channels, nclasses):
        super().__init__()
        across = (channels, *ENCODED)
        for level, width in enumerate(DECODED):
            below = ENCODED[-1] if level == len(DECODED) - 1 else DECODED[level + 1]
            self.add_module(f"up{level}", Up(below, across[level], width))
        self.classes = nn.Conv2d(DECODED[0], nclasses, 1)
        nn.init.xavier_uniform_(self.classes.weight)
        nn.init.zeros_(self.classes.bias)

    def forward(self, *maps):
        """Return logits (N, classes, H, W) from the image and the maps of the encoder, the largest one first."""
        net = maps[-1]
        for level in reversed(range(len(DECODED))):
            net = self.get_submodule(f"up{level}")(net, maps[level])
        return self.classes(net)


class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        self.conv_stem, self.bn0 = Convolution(input_shape[0], 32, 3, 2), batch_norm(32)
        channels, blocks = 32, []
        for expansion, kernel, first, width, count in STAGES:
            for number in range(count):
                blocks.append(Block(channels, expansion, kernel, first if number == 0 else 1, width))
                channels = width
        self.blocks = nn.Sequential(*blocks)
        self.head = Head(input_shape[0], nclasses)
        for module in self.modules():
            if isinstance(module, Convolution):
                nn.init.kaiming_normal_(module.weight, mode="fan_out")

    def forward(self, x):
        image = (x - 127) / 128
        net, maps = F.relu6(self.bn0(self.conv_stem(image))), [image]
        for number, block in enumerate(self.blocks):
            net = block(net)
            if number in LEVELS:
                maps.append(net)
        return self.head(*maps)

    def loss(self, output, y):
        return digits.segmentation_loss(output, y)

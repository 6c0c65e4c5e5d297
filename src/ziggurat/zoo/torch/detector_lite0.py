"""A detector without anchor boxes on EfficientNet-Lite0, after FCOS (Tian et al., 2019), YOLOX and TOOD (2021).

The backbone has the names of `efficientnet_lite0`, so that Google's weights load. A feature pyramid has cells of 8, 16
and 32 px, and for each level two branches: one for the classes, one for the distances from a cell's center to the sides
of a box. All that stands behind the backbone is the head, which is trained first where a training fine-tunes.
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
# Blocks that give the levels of the pyramid, their widths, and the sides of their cells in px.
LEVELS = (4, 10, 15)
WIDTHS = (40, 112, 320)
STRIDES = (8, 16, 32)
CHANNELS = 96
RARE = 0.01


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

    def __init__(self, channels, width, kernel):
        super().__init__()
        self.conv, self.bn = Convolution(channels, width, kernel), batch_norm(width)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)))


class Branches(nn.Module):
    """Logits and distances for each cell of one level of the pyramid."""

    def __init__(self, nclasses):
        super().__init__()
        self.class_conv = Layer(CHANNELS, CHANNELS, 3)
        self.classes = nn.Conv2d(CHANNELS, nclasses, 1)
        self.box_conv = Layer(CHANNELS, CHANNELS, 3)
        self.sides = nn.Conv2d(CHANNELS, 4, 1)
        # Few cells have an object: scores begin low, or the first steps would be spent on that alone.
        nn.init.constant_(self.classes.bias, np.log(RARE / (1 - RARE)))
        nn.init.zeros_(self.sides.bias)

    def forward(self, x):
        found = self.classes(self.class_conv(x)), self.sides(self.box_conv(x))
        return [each.flatten(2).transpose(1, 2) for each in found]


class Head(nn.Module):
    """A feature pyramid, with branches on each of its levels."""

    def __init__(self, nclasses):
        super().__init__()
        for level, width in enumerate(WIDTHS):
            self.add_module(f"across{level}", Layer(width, CHANNELS, 1))
            self.add_module(f"smooth{level}", Layer(CHANNELS, CHANNELS, 3))
            self.add_module(f"level{level}", Branches(nclasses))

    def forward(self, *maps):
        """Return logits (N, K, classes) and distances (N, K, 4), the finest level first."""
        logits, sides, above = [], [], None
        for level in reversed(range(len(maps))):
            net = self.get_submodule(f"across{level}")(maps[level])
            if above is not None:
                # Sides are rounded up on the way down, so the enlarged map may have a row or column too many.
                net = net + F.interpolate(above, scale_factor=2)[:, :, : net.shape[2], : net.shape[3]]
            above = self.get_submodule(f"smooth{level}")(net)
            found = self.get_submodule(f"level{level}")(above)
            logits.insert(0, found[0])
            sides.insert(0, found[1])
        return torch.cat(logits, dim=1), torch.cat(sides, dim=1)


class UserModel(Tower):
    def build(self):
        channels, height, width = self.input_shape
        points, sizes = digits.anchor_points(height, width, STRIDES)
        self.register_buffer("points", points, persistent=False)
        self.register_buffer("sizes", sizes, persistent=False)
        self.conv_stem, self.bn0 = Convolution(channels, 32, 3, 2), batch_norm(32)
        channels, blocks = 32, []
        for expansion, kernel, first, width, count in STAGES:
            for number in range(count):
                blocks.append(Block(channels, expansion, kernel, first if number == 0 else 1, width))
                channels = width
        self.blocks = nn.Sequential(*blocks)
        self.head = Head(self.nclasses)
        for module in self.modules():
            if isinstance(module, Convolution):
                nn.init.kaiming_normal_(module.weight, mode="fan_out")

    @model_property
    def predictions(self):
        """Boxes (N, K, 4) in px and logits (N, K, classes)."""
        net = F.relu6(self.bn0(self.conv_stem((self.x - 127) / 128)))
        maps = []
        for number, block in enumerate(self.blocks):
            net = block(net)
            if number in LEVELS:
                maps.append(net)
        logits, sides = self.head(*maps)
        distances = sides.clamp(max=5.0).exp() * self.sizes
        return torch.cat([self.points - distances[..., :2], self.points + distances[..., 2:]], dim=2), logits

    @model_property
    def inference(self):
        boxes, logits = self.predictions
        return torch.cat([boxes, logits.sigmoid()], dim=2)

    @model_property
    def loss(self):
        boxes, logits = self.predictions
        return digits.detection_loss(boxes, logits, self.y, self.points)

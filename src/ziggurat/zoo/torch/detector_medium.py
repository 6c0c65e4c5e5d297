"""A detector without anchor boxes on ResNet-50, after FCOS (Tian et al., 2019), YOLOX and TOOD (2021).

The backbone has the names of torchvision's ResNet-50, so that its published weights load. A feature pyramid has cells
of 8, 16 and 32 px, and for each level two branches: one for the classes, one for the distances from a cell's center to
the sides of a box.
"""

WIDTHS = (64, 128, 256, 512)
BLOCKS = (3, 4, 6, 3)
STRIDES = (8, 16, 32)
WIDER = 4
CHANNELS = 192
RARE = 0.01


class Block(nn.Module):
    """A narrow 3x3 convolution between two of 1x1, beside a shortcut; the middle one halves the image at stride 2."""

    def __init__(self, channels, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, WIDER * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(WIDER * width)
        self.downsample = None
        if stride > 1 or channels != WIDER * width:
            convolution = nn.Conv2d(channels, WIDER * width, 1, stride, bias=False)
            self.downsample = nn.Sequential(convolution, nn.BatchNorm2d(WIDER * width))

    def forward(self, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)))
        return F.relu(self.bn3(self.conv3(x)) + shortcut)


class Convolution(nn.Module):
    """A convolution with batch norm and ReLU."""

    def __init__(self, channels, width, kernel):
        super().__init__()
        self.conv = nn.Conv2d(channels, width, kernel, padding=kernel // 2, bias=False)
        self.bn = nn.BatchNorm2d(width)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)))


class Head(nn.Module):
    """Two branches on one level of the pyramid."""

    def __init__(self, nclasses):
        super().__init__()
        self.class_conv = Convolution(CHANNELS, CHANNELS, 3)
        self.classes = nn.Conv2d(CHANNELS, nclasses, 1)
        self.box_conv = Convolution(CHANNELS, CHANNELS, 3)
        self.sides = nn.Conv2d(CHANNELS, 4, 1)
        # Few cells have an object: scores begin low, or the first steps would be spent on that alone.
        nn.init.constant_(self.classes.bias, np.log(RARE / (1 - RARE)))
        nn.init.zeros_(self.sides.bias)

    def forward(self, x):
        found = self.classes(self.class_conv(x)), self.sides(self.box_conv(x))
        return [each.flatten(2).transpose(1, 2) for each in found]


class UserModel(Tower):
    def build(self):
        channels, height, width = self.input_shape
        # Colors as in ImageNet, on the scale of 0 to 255; they are constants and no part of the weights.
        mean, std = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)) if channels == 3 else ((0.5,), (0.25,))
        points, sizes = digits.anchor_points(height, width, STRIDES)
        constants = {"mean": torch.tensor(mean), "std": torch.tensor(std)}
        for name, value in constants.items():
            self.register_buffer(name, 255 * value.reshape(-1, 1, 1), persistent=False)
        self.register_buffer("points", points, persistent=False)
        self.register_buffer("sizes", sizes, persistent=False)

        self.conv1 = nn.Conv2d(channels, WIDTHS[0], 7, 2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(WIDTHS[0])
        before = WIDTHS[0]
        for number, (width, blocks) in enumerate(zip(WIDTHS, BLOCKS), start=1):
            stage = []
            for index in range(blocks):
                stage.append(Block(before, width, 2 if number > 1 and index == 0 else 1))
                before = WIDER * width
            self.add_module(f"layer{number}", nn.Sequential(*stage))
        for level in (2, 3, 4):
            self.add_module(f"across{level}", Convolution(WIDER * WIDTHS[level - 1], CHANNELS, 1))
            self.add_module(f"smooth{level}", Convolution(CHANNELS, CHANNELS, 3))
            self.add_module(f"head{level}", Head(self.nclasses))
        for module in self.modules():
            if isinstance(module, nn.Conv2d) and module.bias is None:
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    @model_property
    def predictions(self):
        """Boxes (N, K, 4) in px and logits (N, K, classes)."""
        net = F.relu(self.bn1(self.conv1((self.x - self.mean) / self.std)))
        net = F.max_pool2d(net, 3, stride=2, padding=1)
        levels = {}
        for level in (1, 2, 3, 4):
            net = levels[level] = self.get_submodule(f"layer{level}")(net)
        logits, sides, above = [], [], None
        for level in (4, 3, 2):
            net = self.get_submodule(f"across{level}")(levels[level])
            if above is not None:
                # Sides are rounded up on the way down, so the enlarged map may have a row or column too many.
                net = net + F.interpolate(above, scale_factor=2)[:, :, : net.shape[2], : net.shape[3]]
            above = self.get_submodule(f"smooth{level}")(net)
            found = self.get_submodule(f"head{level}")(above)
            logits.insert(0, found[0])
            sides.insert(0, found[1])
        distances = torch.cat(sides, dim=1).clamp(max=5.0).exp() * self.sizes
        boxes = torch.cat([self.points - distances[..., :2], self.points + distances[..., 2:]], dim=2)
        return boxes, torch.cat(logits, dim=1)

    @model_property
    def inference(self):
        boxes, logits = self.predictions
        return torch.cat([boxes, logits.sigmoid()], dim=2)

    @model_property
    def loss(self):
        boxes, logits = self.predictions
        return digits.detection_loss(boxes, logits, self.y, self.points)

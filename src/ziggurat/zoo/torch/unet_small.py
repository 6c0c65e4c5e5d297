"""A U-Net with a quarter of the widths and one level less, for small images and few masks."""

WIDTHS = (16, 32, 64, 128)


class Convolution(nn.Conv2d):
    """A convolution with batch norm and ReLU."""

    def __init__(self, channels, width):
        super().__init__(channels, width, 3, padding=1, bias=False)
        nn.init.kaiming_normal_(self.weight)
        self.norm = nn.BatchNorm2d(width, eps=0.001, momentum=0.05)

    def forward(self, net):
        return F.relu(self.norm(super().forward(net)))


class Widening(nn.ConvTranspose2d):
    """A transposed convolution with batch norm and ReLU: it doubles both sides."""

    def __init__(self, channels, width):
        super().__init__(channels, width, 2, stride=2, bias=False)
        nn.init.kaiming_normal_(self.weight)
        self.norm = nn.BatchNorm2d(width, eps=0.001, momentum=0.05)

    def forward(self, net):
        return F.relu(self.norm(super().forward(net)))


class Down(nn.Module):
    def __init__(self, channels, width):
        super().__init__()
        self.conv1 = Convolution(channels, width)
        self.conv2 = Convolution(width, width)

    def forward(self, net):
        return self.conv2(self.conv1(net))


class Up(nn.Module):
    def __init__(self, channels, width):
        super().__init__()
        self.widen = Widening(channels, width)
        self.conv1 = Convolution(2 * width, width)
        self.conv2 = Convolution(width, width)

    def forward(self, net, across):
        net = torch.cat([across, self.widen(net)], dim=1)
        return self.conv2(self.conv1(net))


class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        channels = (input_shape[0], *WIDTHS)
        for level, width in enumerate(WIDTHS, start=1):
            self.add_module(f"down{level}", Down(channels[level - 1], width))
        for level, width in enumerate(WIDTHS[:-1], start=1):
            self.add_module(f"up{level}", Up(channels[level + 1], width))
        self.logits = nn.Conv2d(WIDTHS[0], nclasses, 1)
        nn.init.xavier_uniform_(self.logits.weight)
        nn.init.zeros_(self.logits.bias)

    def forward(self, x):
        height, width = x.shape[2:]
        # The encoder halves the sides once a level: they must divide, so zeros are added below and to the right.
        multiple = 2 ** (len(WIDTHS) - 1)
        net = self.down1(F.pad(x / 64.0, (0, -width % multiple, 0, -height % multiple)))
        across = []
        for level in range(2, len(WIDTHS) + 1):
            across.append(net)
            net = self.get_submodule(f"down{level}")(F.max_pool2d(net, 2))
        for level in range(len(WIDTHS) - 1, 0, -1):
            net = self.get_submodule(f"up{level}")(net, across.pop())
        return self.logits(net)[:, :, :height, :width]

    def loss(self, output, y):
        layers = [layer for layer in self.modules() if isinstance(layer, (Convolution, Widening))]
        return digits.segmentation_loss(output, y) + sum(digits.l2_regularization(layer, 0.0001) for layer in layers)

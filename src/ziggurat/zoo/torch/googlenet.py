"""GoogLeNet (Szegedy et al., 2014): nine inception modules, with batch norm instead of the two auxiliary outputs."""

# Widths of 1x1; 1x1 and 3x3; 1x1 and 5x5; pooled 1x1 (table 1 of the paper).
MODULES = {
    "3a": (64, 96, 128, 16, 32, 32),
    "3b": (128, 128, 192, 32, 96, 64),
    "4a": (192, 96, 208, 16, 48, 64),
    "4b": (160, 112, 224, 24, 64, 64),
    "4c": (128, 128, 256, 24, 64, 64),
    "4d": (112, 144, 288, 32, 64, 64),
    "4e": (256, 160, 320, 32, 128, 128),
    "5a": (256, 160, 320, 32, 128, 128),
    "5b": (384, 192, 384, 48, 128, 128),
}


def same(net, kernel):
    """Zeros around maps for a stride of 2, as TensorFlow's SAME: an even side gets one less before than behind."""
    height, width = net.shape[2:]
    before, after = (kernel - 3) // 2, (kernel - 1) // 2
    return F.pad(net, (before + width % 2, after, before + height % 2, after))


class Convolution(nn.Conv2d):
    """A convolution with batch norm and ReLU."""

    def __init__(self, channels, width, kernel, stride=1):
        super().__init__(channels, width, kernel, stride, padding=kernel // 2 if stride == 1 else 0, bias=False)
        nn.init.xavier_uniform_(self.weight)
        self.norm = nn.BatchNorm2d(width, eps=0.001, momentum=0.05)

    def forward(self, net):
        return F.relu(self.norm(super().forward(net)))


class Inception(nn.Module):
    def __init__(self, channels, widths):
        super().__init__()
        one, three_in, three, five_in, five, pooled = widths
        self.conv1 = Convolution(channels, one, 1)
        self.conv3_in = Convolution(channels, three_in, 1)
        self.conv3 = Convolution(three_in, three, 3)
        self.conv5_in = Convolution(channels, five_in, 1)
        self.conv5 = Convolution(five_in, five, 5)
        self.pooled = Convolution(channels, pooled, 1)
        self.width = one + three + five + pooled

    def forward(self, net):
        branches = [
            self.conv1(net),
            self.conv3(self.conv3_in(net)),
            self.conv5(self.conv5_in(net)),
            self.pooled(F.max_pool2d(net, 3, 1, padding=1)),
        ]
        return torch.cat(branches, dim=1)


class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        self.conv1 = Convolution(input_shape[0], 64, 7, stride=2)
        self.conv2_in = Convolution(64, 64, 1)
        self.conv2 = Convolution(64, 192, 3)
        channels = 192
        for name, widths in MODULES.items():
            module = Inception(channels, widths)
            self.add_module(f"inception{name}", module)
            channels = module.width
        self.dropout1 = nn.Dropout(0.4)
        self.logits = nn.Linear(channels, nclasses)
        nn.init.xavier_uniform_(self.logits.weight)
        nn.init.zeros_(self.logits.bias)

    def forward(self, x):
        net = self.conv1(same(x / 64.0, 7))
        # Nothing is below 0 after a ReLU: zeros around the maps never are a maximum that was not there.
        net = F.max_pool2d(same(net, 3), 3, 2)
        net = self.conv2(self.conv2_in(net))
        net = F.max_pool2d(same(net, 3), 3, 2)
        for name in MODULES:
            net = self.get_submodule(f"inception{name}")(net)
            if name in ("3b", "4e"):
                net = F.max_pool2d(same(net, 3), 3, 2)
        return self.logits(self.dropout1(net.mean((2, 3))))

    def loss(self, output, y):
        convolutions = [layer for layer in self.modules() if isinstance(layer, Convolution)]
        return digits.classification_loss(output, y) + sum(
            digits.l2_regularization(layer, 0.0002) for layer in convolutions
        )

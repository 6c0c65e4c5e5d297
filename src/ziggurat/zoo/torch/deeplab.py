"""A head like DeepLabv3's (Chen et al., 2017) on ResNet-18: atrous convolutions of several rates see far and near."""

# Blocks, width, stride of the first, atrous rate: the last stage keeps its size and looks twice as far instead.
STAGES = ((2, 64, 1, 1), (2, 128, 2, 1), (2, 256, 2, 1), (2, 512, 1, 2))
RATES = (6, 12, 18)


def same(net, kernel):
    """Zeros around maps for a stride of 2, as TensorFlow's SAME: an even side gets one less before than behind."""
    height, width = net.shape[2:]
    before, after = (kernel - 3) // 2, (kernel - 1) // 2
    return F.pad(net, (before + width % 2, after, before + height % 2, after))


class Convolution(nn.Conv2d):
    """A convolution with batch norm."""

    def __init__(self, channels, width, kernel, stride=1, rate=1):
        padding = rate * (kernel // 2) if stride == 1 else 0
        super().__init__(channels, width, kernel, stride, padding=padding, dilation=rate, bias=False)
        nn.init.kaiming_normal_(self.weight)
        self.norm = nn.BatchNorm2d(width, eps=0.001, momentum=0.05)

    def forward(self, net):
        if self.stride[0] > 1 and self.kernel_size[0] > 1:
            net = same(net, self.kernel_size[0])
        return self.norm(super().forward(net))


class Block(nn.Module):
    def __init__(self, channels, width, stride, rate):
        super().__init__()
        self.conv1 = Convolution(channels, width, 3, stride, rate if stride == 1 else 1)
        self.conv2 = Convolution(width, width, 3, rate=rate)
        has_shortcut = stride > 1 or channels != width
        self.shortcut = Convolution(channels, width, 1, stride) if has_shortcut else nn.Identity()

    def forward(self, net):
        return F.relu(self.shortcut(net) + self.conv2(F.relu(self.conv1(net))))


class Head(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.near = Convolution(channels, 128, 1)
        for rate in RATES:
            self.add_module(f"rate{rate}", Convolution(channels, 128, 3, rate=rate))
        self.whole = Convolution(channels, 128, 1)
        self.joined = Convolution((2 + len(RATES)) * 128, 128, 1)
        self.dropout1 = nn.Dropout(0.1)

    def forward(self, net):
        branches = [self.near(net)]
        branches += [self.get_submodule(f"rate{rate}")(net) for rate in RATES]
        # Each place gets the mean of the image before the batch norm: one image alone has too few values for it else.
        branches.append(self.whole(net.mean((2, 3), keepdim=True).expand_as(net)))
        net = F.relu(self.joined(F.relu(torch.cat(branches, dim=1))))
        return self.dropout1(net)


class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        self.is_large = input_shape[1] > 64
        kernel, stride = (7, 2) if self.is_large else (3, 1)
        self.conv1 = Convolution(input_shape[0], 64, kernel, stride)
        channels = 64
        for number, (blocks, width, stride, rate) in enumerate(STAGES, start=2):
            stage = nn.Sequential()
            for block in range(1, blocks + 1):
                stage.add_module(f"block{block}", Block(channels, width, stride if block == 1 else 1, rate))
                channels = width
            self.add_module(f"stage{number}", stage)
        self.head = Head(channels)
        self.logits = nn.Conv2d(128, nclasses, 1)
        nn.init.xavier_uniform_(self.logits.weight)
        nn.init.zeros_(self.logits.bias)

    def forward(self, x):
        net = F.relu(self.conv1(x / 64.0))
        if self.is_large:
            net = F.max_pool2d(same(net, 3), 3, 2)
        net = self.stage5(self.stage4(self.stage3(self.stage2(net))))
        net = self.logits(self.head(net))
        return F.interpolate(net, size=x.shape[2:], mode="bilinear", align_corners=False)

    def loss(self, output, y):
        convolutions = [layer for layer in self.modules() if isinstance(layer, Convolution)]
        return digits.segmentation_loss(output, y) + sum(
            digits.l2_regularization(layer, 0.0001) for layer in convolutions
        )

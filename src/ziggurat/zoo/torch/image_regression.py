"""A small convolutional network that predicts numbers from an image: three stages, then one number for each target."""


class Convolution(nn.Conv2d):
    """A convolution with batch norm and ReLU."""

    def __init__(self, channels, width):
        super().__init__(channels, width, 3, padding=1, bias=False)
        nn.init.xavier_uniform_(self.weight)
        self.norm = nn.BatchNorm2d(width, eps=0.001, momentum=0.05)

    def forward(self, net):
        return F.relu(self.norm(super().forward(net)))


class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape, target_shape, target_mean, target_std):
        super().__init__()
        channels, *sides = input_shape
        self.conv1a = Convolution(channels, 16)
        self.conv1b = Convolution(16, 16)
        self.conv2a = Convolution(16, 32)
        self.conv2b = Convolution(32, 32)
        self.conv3a = Convolution(32, 64)
        self.conv3b = Convolution(64, 64)
        # Where things are matters to numbers such as positions, so a coarse map is kept, not its mean alone.
        self.cell = [max(1, side // 8 // 4) for side in sides]
        rows, columns = (side // 8 // cell for side, cell in zip(sides, self.cell, strict=True))
        self.fc1 = nn.Linear(64 * rows * columns, 128)
        self.output = nn.Linear(128, int(np.prod(target_shape)))
        for layer in (self.fc1, self.output):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)
        # Buffers are on the device of the weights; these come from the data, so that no checkpoint needs them.
        self.register_buffer("mean", target_mean, persistent=False)
        self.register_buffer("std", target_std, persistent=False)

    def forward(self, x):
        net = x / 64.0
        net = F.max_pool2d(self.conv1b(self.conv1a(net)), 2)
        net = F.max_pool2d(self.conv2b(self.conv2a(net)), 2)
        net = F.max_pool2d(self.conv3b(self.conv3a(net)), 2)
        net = F.avg_pool2d(net, self.cell)
        net = self.output(F.relu(self.fc1(net.flatten(1))))
        return net * self.std + self.mean

    def loss(self, output, y):
        # In units of the deviation, so that one learning rate does for targets of any size.
        error = (output - y.reshape(output.shape)) / self.std
        convolutions = [layer for layer in self.modules() if isinstance(layer, Convolution)]
        return error.square().mean() + sum(digits.l2_regularization(layer, 0.0005) for layer in convolutions)

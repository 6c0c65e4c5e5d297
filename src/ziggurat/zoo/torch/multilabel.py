"""A small convolutional network for images with several labels at once: one logit for each label."""


class Convolution(nn.Conv2d):
    """A convolution with batch norm and ReLU."""

    def __init__(self, channels, width):
        super().__init__(channels, width, 3, padding=1, bias=False)
        nn.init.xavier_uniform_(self.weight)
        self.norm = nn.BatchNorm2d(width, eps=0.001, momentum=0.05)

    def forward(self, net):
        return F.relu(self.norm(super().forward(net)))


class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        self.conv1a = Convolution(input_shape[0], 32)
        self.conv1b = Convolution(32, 32)
        self.conv2a = Convolution(32, 64)
        self.conv2b = Convolution(64, 64)
        self.conv3a = Convolution(64, 128)
        self.conv3b = Convolution(128, 128)
        self.dropout1 = nn.Dropout(0.3)
        self.logits = nn.Linear(128, nclasses)
        nn.init.xavier_uniform_(self.logits.weight)
        nn.init.zeros_(self.logits.bias)

    def forward(self, x):
        net = x / 64.0
        net = F.max_pool2d(self.conv1b(self.conv1a(net)), 2)
        net = F.max_pool2d(self.conv2b(self.conv2a(net)), 2)
        net = F.max_pool2d(self.conv3b(self.conv3a(net)), 2)
        return self.logits(self.dropout1(net.mean((2, 3))))

    def loss(self, output, y):
        convolutions = [layer for layer in self.modules() if isinstance(layer, Convolution)]
        return F.binary_cross_entropy_with_logits(output, y) + sum(
            digits.l2_regularization(layer, 0.0005) for layer in convolutions
        )

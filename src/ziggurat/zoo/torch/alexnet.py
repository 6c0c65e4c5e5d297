"""AlexNet (Krizhevsky et al., 2012), in the one-tower form of arXiv 1404.5997, with local response normalization."""


def pooled(side):
    """Length of a side after a pooling of 3 pixels with stride 2."""
    return (side - 3) // 2 + 1


class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        channels, height, width = input_shape
        # 224 pixels give 55 x 55 after the first convolution, and 6 x 6 at the end.
        rows, columns = (pooled(pooled(pooled((side - 7) // 4 + 1))) for side in (height, width))
        self.conv1 = nn.Conv2d(channels, 96, 11, stride=4, padding=2)
        self.conv2 = nn.Conv2d(96, 256, 5, padding=2)
        self.conv3 = nn.Conv2d(256, 384, 3, padding=1)
        self.conv4 = nn.Conv2d(384, 384, 3, padding=1)
        self.conv5 = nn.Conv2d(384, 256, 3, padding=1)
        self.fc6 = nn.Linear(256 * rows * columns, 4096)
        self.dropout6 = nn.Dropout(0.5)
        self.fc7 = nn.Linear(4096, 4096)
        self.dropout7 = nn.Dropout(0.5)
        self.fc8 = nn.Linear(4096, nclasses)
        # PyTorch divides alpha by the number of channels that it sums over.
        self.normalized = nn.LocalResponseNorm(5, alpha=5e-4, beta=0.75, k=2.0)
        for layer in self.modules():
            if isinstance(layer, (nn.Conv2d, nn.Linear)):
                nn.init.kaiming_normal_(layer.weight)
                nn.init.zeros_(layer.bias)

    def forward(self, x):
        net = x / 64.0
        net = F.max_pool2d(self.normalized(F.relu(self.conv1(net))), 3, 2)
        net = F.max_pool2d(self.normalized(F.relu(self.conv2(net))), 3, 2)
        net = F.relu(self.conv3(net))
        net = F.relu(self.conv4(net))
        net = F.max_pool2d(F.relu(self.conv5(net)), 3, 2)
        net = self.dropout6(F.relu(self.fc6(net.flatten(1))))
        net = self.dropout7(F.relu(self.fc7(net)))
        return self.fc8(net)

    def loss(self, output, y):
        return digits.classification_loss(output, y) + digits.l2_regularization(self, 0.0005)

"""LeNet-5 (LeCun et al., 1998) in the form that DIGITS's users know: two convolutions, two dense layers."""


class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        channels, height, width = input_shape
        rows, columns = (((side - 4) // 2 - 4) // 2 for side in (height, width))
        self.conv1 = nn.Conv2d(channels, 20, 5)
        self.conv2 = nn.Conv2d(20, 50, 5)
        self.fc1 = nn.Linear(50 * rows * columns, 500)
        self.dropout1 = nn.Dropout(0.5)
        self.fc2 = nn.Linear(500, nclasses)
        for layer in (self.conv1, self.conv2, self.fc1, self.fc2):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        # Divides by the standard deviation of MNIST, so that the first layer sees numbers around one.
        net = x * 0.0125
        net = F.max_pool2d(F.relu(self.conv1(net)), 2)
        net = F.max_pool2d(F.relu(self.conv2(net)), 2)
        net = F.relu(self.fc1(net.flatten(1)))
        return self.fc2(self.dropout1(net))

    def loss(self, output, y):
        return digits.classification_loss(output, y) + digits.l2_regularization(self, 0.0005)

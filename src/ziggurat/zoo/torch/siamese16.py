"""A siamese network with embeddings of 16 numbers, from which the nearest neighbor tells the class."""


class Embedder(nn.Module):
    def __init__(self, channels, height, width):
        super().__init__()
        rows, columns = (((side - 4) // 2 - 4) // 2 for side in (height, width))
        self.conv1 = nn.Conv2d(channels, 20, 5)
        self.conv2 = nn.Conv2d(20, 50, 5)
        self.fc1 = nn.Linear(50 * rows * columns, 500)
        self.embedding = nn.Linear(500, 16)
        for layer in (self.conv1, self.conv2, self.fc1, self.embedding):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, net):
        net = F.max_pool2d(F.relu(self.conv1(net)), 2)
        net = F.max_pool2d(F.relu(self.conv2(net)), 2)
        return self.embedding(F.relu(self.fc1(net.flatten(1))))


class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        channels, height, width = input_shape
        self.embed = Embedder(channels // 2, height, width)

    def forward(self, x):
        left, right = (x / 255.0).chunk(2, dim=1)
        return [self.embed(left), self.embed(right)]

    def loss(self, output, y):
        first, second = output
        return digits.contrastive_loss(first, second, y, margin=1.0) + digits.l2_regularization(self, 0.0005)

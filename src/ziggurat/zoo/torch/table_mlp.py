"""A multilayer perceptron for tables: embedded categories, two hidden layers; it predicts numbers, or classes."""


class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape, target_shape, target_mean, target_std, categories):
        super().__init__()
        self.nclasses = nclasses
        self.categories = {place: count for place, count in enumerate(categories) if count}
        self.numbers = [place for place in range(input_shape[0]) if place not in self.categories]
        width = len(self.numbers)
        for place, count in self.categories.items():
            embedding = nn.Embedding(count, min(50, (count + 1) // 2))
            nn.init.normal_(embedding.weight, std=0.1)
            self.add_module(f"category{place}", embedding)
            width += embedding.embedding_dim
        self.fc1 = nn.Linear(width, 128)
        self.dropout1 = nn.Dropout(0.2)
        self.fc2 = nn.Linear(128, 64)
        self.dropout2 = nn.Dropout(0.2)
        self.output = nn.Linear(64, nclasses or int(np.prod(target_shape)))
        nn.init.kaiming_normal_(self.fc1.weight)
        nn.init.kaiming_normal_(self.fc2.weight)
        nn.init.xavier_uniform_(self.output.weight)
        for layer in (self.fc1, self.fc2, self.output):
            nn.init.zeros_(layer.bias)
        # Buffers are on the device of the weights; these come from the data, so that no checkpoint needs them.
        self.register_buffer("mean", target_mean, persistent=False)
        self.register_buffer("std", target_std, persistent=False)

    def forward(self, x):
        parts = [x[:, self.numbers]]
        parts += [self.get_submodule(f"category{place}")(x[:, place].long()) for place in self.categories]
        net = torch.cat(parts, dim=1)
        net = self.dropout1(F.relu(self.fc1(net)))
        net = self.dropout2(F.relu(self.fc2(net)))
        net = self.output(net)
        return net if self.nclasses else net * self.std + self.mean

    def loss(self, output, y):
        if self.nclasses:
            return digits.classification_loss(output, y)
        # In units of the deviation, so that one learning rate does for targets of any size.
        return ((output - y.reshape(output.shape)) / self.std).square().mean()

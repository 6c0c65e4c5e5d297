"""A linear model for tables: numbers as they are, categories one-hot; it predicts numbers, or classes."""


class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape, target_shape, target_mean, target_std, categories):
        super().__init__()
        self.nclasses = nclasses
        self.categories = {place: count for place, count in enumerate(categories) if count}
        self.numbers = [place for place in range(input_shape[0]) if place not in self.categories]
        width = len(self.numbers) + sum(self.categories.values())
        self.linear = nn.Linear(width, nclasses or int(np.prod(target_shape)))
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)
        # Buffers are on the device of the weights; these come from the data, so that no checkpoint needs them.
        self.register_buffer("mean", target_mean, persistent=False)
        self.register_buffer("std", target_std, persistent=False)

    def forward(self, x):
        parts = [x[:, self.numbers]]
        parts += [F.one_hot(x[:, place].long(), count) for place, count in self.categories.items()]
        net = self.linear(torch.cat(parts, dim=1))
        return net if self.nclasses else net * self.std + self.mean

    def loss(self, output, y):
        if self.nclasses:
            return digits.classification_loss(output, y)
        # In units of the deviation, so that one learning rate does for targets of any size.
        return ((output - y.reshape(output.shape)) / self.std).square().mean()

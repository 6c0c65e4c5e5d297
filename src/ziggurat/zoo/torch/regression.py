"""A linear regression: one number, or a few, from all numbers of the input."""


class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape, target_shape):
        super().__init__()
        self.linear = nn.Linear(int(np.prod(input_shape)), int(np.prod(target_shape)))
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, x):
        return self.linear(x.flatten(1))

    def loss(self, output, y):
        return digits.mse_loss(output, y.reshape(output.shape).float())

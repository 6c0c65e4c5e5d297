"""A small convolutional network from image to image, such as from a noisy one to a clean one.

Its output is 0 to 1. The target is an image of the same size, 0 to 255, and is divided by 255; without a target, the
input is its own.
"""


class UserModel(Tower):
    def build(self):
        channels, outputs = self.input_shape[0], (self.target_shape or self.input_shape)[0]
        self.conv1 = nn.Conv2d(channels, 32, 3, padding=1)
        self.conv2 = nn.Conv2d(32, 32, 3, padding=1)
        self.conv3 = nn.Conv2d(32, 32, 3, padding=1)
        self.conv4 = nn.Conv2d(32, 32, 3, padding=1)
        self.change = nn.Conv2d(32, outputs, 3, padding=1)
        for layer in (self.conv1, self.conv2, self.conv3, self.conv4, self.change):
            nn.init.kaiming_normal_(layer.weight)
            nn.init.zeros_(layer.bias)
        # What is to change is small at first: where the channels are the same, the input is added to it.
        nn.init.trunc_normal_(self.change.weight, std=0.01, a=-0.02, b=0.02)

    @model_property
    def inference(self):
        image = self.x / 255.0
        net = image
        for layer in (self.conv1, self.conv2, self.conv3, self.conv4):
            net = F.relu(layer(net))
        change = self.change(net)
        net = image + change if change.shape[1] == image.shape[1] else change + 0.5
        if not self.is_training:
            net = net.clamp(0.0, 1.0)
            self.summaries.append(digits.image("output", net))
        return net

    @model_property
    def loss(self):
        return digits.mse_loss(self.inference, (self.x if self.y is None else self.y) / 255.0)

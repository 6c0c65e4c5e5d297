"""An auto-encoder of dense layers: the image through a bottleneck of 50 numbers and back."""


class UserModel(Tower):
    def build(self):
        numbers = int(np.prod(self.input_shape))
        self.encode1 = nn.Linear(numbers, 300)
        self.encode2 = nn.Linear(300, 50)
        self.decode1 = nn.Linear(50, 300)
        self.decode2 = nn.Linear(300, numbers)
        for layer in (self.encode1, self.encode2, self.decode1, self.decode2):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    @model_property
    def inference(self):
        net = (self.x / 255.0).flatten(1)
        for layer in (self.encode1, self.encode2, self.decode1):
            net = F.relu(layer(net))
        image = torch.sigmoid(self.decode2(net)).reshape(self.x.shape)
        self.summaries.append(digits.image("reconstruction", image))
        return image

    @model_property
    def loss(self):
        return digits.mse_loss(self.inference, self.x / 255.0)

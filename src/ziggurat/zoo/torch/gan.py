"""A generative adversarial network (Goodfellow et al., 2014) of convolutions as in DCGAN (Radford et al., 2016).

The generator makes images of noise; the discriminator learns to tell them from those of the dataset, and so teaches
it. For small images, such as 28 x 28 or 32 x 32. Labels are not looked at.
"""

NOISE = 64


class Generator(nn.Module):
    def __init__(self, shape):
        super().__init__()
        channels, self.height, self.width = shape
        self.rows, self.columns = -(-self.height // 4), -(-self.width // 4)
        numbers = 128 * self.rows * self.columns
        self.fc1 = nn.Linear(NOISE, numbers, bias=False)
        self.fc1.norm = nn.BatchNorm1d(numbers, eps=0.001, momentum=0.05)
        self.up1 = nn.ConvTranspose2d(128, 64, 4, stride=2, padding=1, bias=False)
        self.up1.norm = nn.BatchNorm2d(64, eps=0.001, momentum=0.05)
        self.up2 = nn.ConvTranspose2d(64, channels, 4, stride=2, padding=1)
        for layer in (self.fc1, self.up1, self.up2):
            nn.init.normal_(layer.weight, std=0.02)
        nn.init.zeros_(self.up2.bias)

    def forward(self, noise):
        net = F.relu(self.fc1.norm(self.fc1(noise)))
        net = net.reshape(-1, 128, self.rows, self.columns)
        net = F.relu(self.up1.norm(self.up1(net)))
        return torch.sigmoid(self.up2(net))[:, :, : self.height, : self.width]


class Discriminator(nn.Module):
    # No batch norm: its averages would mix the two kinds of images that it is to tell apart.
    def __init__(self, shape):
        super().__init__()
        channels, height, width = shape
        self.conv1 = nn.Conv2d(channels, 64, 4, stride=2)
        self.conv2 = nn.Conv2d(64, 128, 4, stride=2)
        self.dropout1 = nn.Dropout(0.3)
        self.fc1 = nn.Linear(128 * -(-height // 4) * -(-width // 4), 1)
        nn.init.normal_(self.conv1.weight, std=0.02)
        nn.init.normal_(self.conv2.weight, std=0.02)
        nn.init.xavier_uniform_(self.fc1.weight)
        for layer in (self.conv1, self.conv2, self.fc1):
            nn.init.zeros_(layer.bias)

    def forward(self, images):
        net = 2 * images - 1
        for layer in (self.conv1, self.conv2):
            height, width = net.shape[2:]
            # Zeros around the maps, so that an odd side is halved upward: one more below and to the right.
            net = F.pad(net, (1, 1 + width % 2, 1, 1 + height % 2))
            net = F.leaky_relu(layer(net), 0.2)
        return self.fc1(self.dropout1(net.flatten(1)))


def cross_entropy(logits, label):
    return F.binary_cross_entropy_with_logits(logits, torch.full_like(logits, label))


class UserModel(Tower):
    def build(self):
        self.generator = Generator(self.input_shape)
        self.discriminator = Discriminator(self.input_shape)
        fixed = torch.randn(256, NOISE, generator=torch.Generator().manual_seed(0))
        self.register_buffer("fixed_noise", fixed, persistent=False)

    @model_property
    def inference(self):
        # Other noise in each step of the training; elsewhere it is always the same.
        count = self.x.shape[0]
        if self.is_training:
            noise = torch.randn(count, NOISE, device=self.x.device)
        else:
            noise = self.fixed_noise[torch.arange(count, device=self.x.device) % len(self.fixed_noise)]
        images = self.generator(self.inference_input("noise", noise))
        self.summaries.append(digits.image("generated", images))
        return images

    @model_property
    def loss(self):
        real = self.discriminator(self.x / 255.0)
        made = self.discriminator(self.inference)
        telling = (cross_entropy(real, 0.9) + cross_entropy(made, 0.0)) / 2
        making = cross_entropy(made, 1.0)
        self.summaries.append(digits.scalar("discriminator_loss", telling))
        self.summaries.append(digits.scalar("generator_loss", making))
        return [
            {"loss": telling, "vars": list(self.discriminator.parameters())},
            {"loss": making, "vars": list(self.generator.parameters())},
        ]

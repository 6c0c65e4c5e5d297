"""A conditional generative adversarial network (Mirza and Osindero, 2014) with an encoder (Perarnau et al., 2016).

The generator makes images of noise and attributes, which are the shares of the classes; the encoder finds both in an
image. So an image is taken apart and made anew with other attributes: give `attributes` or `noise` to a prediction.
For small images, such as 28 x 28 or 32 x 32, with or without classes.
"""

NOISE = 32


def halved(net, layer):
    """Convolution of 4 pixels with stride 2; zeros around the maps, so that an odd side is halved upward."""
    height, width = net.shape[2:]
    return layer(F.pad(net, (1, 1 + width % 2, 1, 1 + height % 2)))


def with_maps(images, attributes):
    """Each attribute is one more channel, the same at each place."""
    maps = attributes[:, :, None, None].expand(-1, -1, *images.shape[2:])
    return torch.cat([images, maps], dim=1)


class Generator(nn.Module):
    def __init__(self, shape, classes):
        super().__init__()
        channels, self.height, self.width = shape
        self.rows, self.columns = -(-self.height // 4), -(-self.width // 4)
        numbers = 64 * self.rows * self.columns
        self.fc1 = nn.Linear(NOISE + classes, numbers, bias=False)
        self.fc1.norm = nn.BatchNorm1d(numbers, eps=0.001, momentum=0.05)
        self.up1 = nn.ConvTranspose2d(64, 32, 4, stride=2, padding=1, bias=False)
        self.up1.norm = nn.BatchNorm2d(32, eps=0.001, momentum=0.05)
        self.up2 = nn.ConvTranspose2d(32, channels, 4, stride=2, padding=1)
        for layer in (self.fc1, self.up1, self.up2):
            nn.init.normal_(layer.weight, std=0.02)
        nn.init.zeros_(self.up2.bias)

    def forward(self, noise, attributes):
        net = F.relu(self.fc1.norm(self.fc1(torch.cat([noise, attributes], dim=1))))
        net = net.reshape(-1, 64, self.rows, self.columns)
        net = F.relu(self.up1.norm(self.up1(net)))
        return torch.sigmoid(self.up2(net))[:, :, : self.height, : self.width]


class Discriminator(nn.Module):
    def __init__(self, shape, classes):
        super().__init__()
        channels, height, width = shape
        self.conv1 = nn.Conv2d(channels + classes, 32, 4, stride=2)
        self.conv2 = nn.Conv2d(32, 64, 4, stride=2)
        self.dropout1 = nn.Dropout(0.3)
        self.fc1 = nn.Linear(64 * -(-height // 4) * -(-width // 4), 1)
        nn.init.normal_(self.conv1.weight, std=0.02)
        nn.init.normal_(self.conv2.weight, std=0.02)
        nn.init.xavier_uniform_(self.fc1.weight)
        for layer in (self.conv1, self.conv2, self.fc1):
            nn.init.zeros_(layer.bias)

    def forward(self, images, attributes):
        net = F.leaky_relu(halved(with_maps(2 * images - 1, attributes), self.conv1), 0.2)
        net = F.leaky_relu(halved(net, self.conv2), 0.2)
        return self.fc1(self.dropout1(net.flatten(1)))


class Encoder(nn.Module):
    def __init__(self, shape, classes):
        super().__init__()
        channels, height, width = shape
        self.conv1 = nn.Conv2d(channels, 32, 4, stride=2)
        self.conv2 = nn.Conv2d(32, 64, 4, stride=2)
        self.fc1 = nn.Linear(64 * -(-height // 4) * -(-width // 4), 128)
        self.attributes = nn.Linear(128, classes) if classes else None
        self.noise = nn.Linear(128, NOISE)
        for layer in self.children():
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, images):
        """Return noise, and a logit for each class."""
        net = F.relu(halved(2 * images - 1, self.conv1))
        net = F.relu(halved(net, self.conv2))
        net = F.relu(self.fc1(net.flatten(1)))
        return self.noise(net), None if self.attributes is None else self.attributes(net)


def shares(attributes):
    """Any numbers are made shares of the classes: not below 0, and 1 in all."""
    attributes = F.relu(attributes)
    return attributes / (attributes.sum(1, keepdim=True) + 1e-6)


def cross_entropy(logits, label):
    return F.binary_cross_entropy_with_logits(logits, torch.full_like(logits, label))


class UserModel(Tower):
    def build(self):
        classes = self.nclasses or 0
        self.generator = Generator(self.input_shape, classes)
        self.discriminator = Discriminator(self.input_shape, classes)
        self.encoder = Encoder(self.input_shape, classes)

    @model_property
    def found(self):
        return self.encoder(self.x / 255.0)

    @model_property
    def given(self):
        noise, logits = self.found
        count = self.x.shape[0]
        attributes = logits.softmax(1) if self.nclasses else self.x.new_zeros(count, 0)
        if self.is_training:
            noise = torch.randn(count, NOISE, device=self.x.device)
            attributes = F.one_hot(self.y, self.nclasses).float() if self.nclasses else attributes
        if self.is_inference:
            noise = self.inference_input("noise", noise)
            if self.nclasses:
                attributes = shares(self.inference_input("attributes", attributes))
        return noise, attributes

    @model_property
    def inference(self):
        noise, attributes = self.given
        images = self.generator(noise, attributes)
        self.summaries.append(digits.image("generated", images))
        return [images, self.found[0]]

    @model_property
    def loss(self):
        made, (noise, attributes) = self.inference[0], self.given
        real = self.discriminator(self.x / 255.0, attributes)
        fake = self.discriminator(made, attributes)
        again, _ = self.encoder(made)
        finding = (again - noise).square().mean()
        if self.nclasses:
            finding = finding + digits.classification_loss(self.found[1], self.y)
        losses = {
            "discriminator": (cross_entropy(real, 0.9) + cross_entropy(fake, 0.0)) / 2,
            "generator": cross_entropy(fake, 1.0),
            "encoder": finding,
        }
        for name, value in losses.items():
            self.summaries.append(digits.scalar(f"{name}_loss", value))
        return [{"loss": value, "vars": list(self.get_submodule(name).parameters())} for name, value in losses.items()]

"""VGG-16 without batch norm (Simonyan and Zisserman, 2014), named and calculated as torchvision's."""

STAGES = ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512))


class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        channels = input_shape[0]
        # Colors as in ImageNet, on the scale of 0 to 255; they are constants and no part of the weights.
        mean, std = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)) if channels == 3 else ((0.5,), (0.25,))
        self.register_buffer("mean", 255 * torch.tensor(mean).reshape(-1, 1, 1), persistent=False)
        self.register_buffer("std", 255 * torch.tensor(std).reshape(-1, 1, 1), persistent=False)
        layers = []
        for convolutions, width in STAGES:
            for _ in range(convolutions):
                layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU()]
                channels = width
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        # The dense layers always see 7 x 7 places: so many remain of 224 px, other sizes are averaged or repeated.
        self.avgpool = nn.AdaptiveAvgPool2d(7)
        self.classifier = nn.Sequential(
            nn.Linear(512 * 7 * 7, 4096),
            nn.ReLU(),
            nn.Dropout(0.5),
            nn.Linear(4096, 4096),
            nn.ReLU(),
            nn.Dropout(0.5),
            nn.Linear(4096, nclasses),
        )
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
                nn.init.zeros_(module.bias)
            elif isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=0.01)
                nn.init.zeros_(module.bias)

    def forward(self, x):
        x = self.features((x - self.mean) / self.std)
        return self.classifier(self.avgpool(x).flatten(1))

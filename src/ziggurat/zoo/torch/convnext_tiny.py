"""ConvNeXt-Tiny (Liu et al., 2022): a ResNet in the form of a Transformer, named and calculated as torchvision's."""

# Blocks and width of each stage; between two stages, the image is halved.
STAGES = ((3, 96), (3, 192), (9, 384), (3, 768))
DROPPED = 0.1  # share of the last block's results that a training step leaves out; earlier blocks lose fewer


class ChannelNorm(nn.LayerNorm):
    """Layer norm over the channels of each place of an image (N, C, H, W)."""

    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Block(nn.Module):
    """A 7x7 convolution in each channel, then two dense layers over the channels, beside a shortcut."""

    def __init__(self, width, dropped):
        super().__init__()
        # The two layers without weights are there for the numbers in the published names.
        self.block = nn.Sequential(
            nn.Conv2d(width, width, 7, padding=3, groups=width),
            nn.Identity(),
            nn.LayerNorm(width, eps=1e-6),
            nn.Linear(width, 4 * width),
            nn.GELU(),
            nn.Linear(4 * width, width),
        )
        self.layer_scale = nn.Parameter(torch.full((width, 1, 1), 1e-6))
        self.dropped = dropped

    def forward(self, x):
        inner = self.block[0](x).permute(0, 2, 3, 1)
        for layer in self.block[2:]:
            inner = layer(inner)
        # Stochastic depth (Huang et al., 2016): a sample keeps the whole result of the block, or none of it.
        kept = F.dropout(x.new_ones(x.shape[0], 1, 1, 1), self.dropped, self.training)
        return x + kept * self.layer_scale * inner.permute(0, 3, 1, 2)


class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        channels = input_shape[0]
        # Colors as in ImageNet, on the scale of 0 to 255; they are constants and no part of the weights.
        mean, std = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)) if channels == 3 else ((0.5,), (0.25,))
        self.register_buffer("mean", 255 * torch.tensor(mean).reshape(-1, 1, 1), persistent=False)
        self.register_buffer("std", 255 * torch.tensor(std).reshape(-1, 1, 1), persistent=False)
        layers, number, total = [], 0, sum(blocks for blocks, _ in STAGES)
        for blocks, width in STAGES:
            if number == 0:
                layers.append(nn.Sequential(nn.Conv2d(channels, width, 4, stride=4), ChannelNorm(width, eps=1e-6)))
            else:
                norm = ChannelNorm(channels, eps=1e-6)
                layers.append(nn.Sequential(norm, nn.Conv2d(channels, width, 2, stride=2)))
            rates = [DROPPED * each / (total - 1) for each in range(number, number + blocks)]
            layers.append(nn.Sequential(*[Block(width, rate) for rate in rates]))
            channels, number = width, number + blocks
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(ChannelNorm(channels, eps=1e-6), nn.Flatten(1), nn.Linear(channels, nclasses))
        for module in self.modules():
            if isinstance(module, (nn.Conv2d, nn.Linear)):
                nn.init.trunc_normal_(module.weight, std=0.02)
                nn.init.zeros_(module.bias)

    def forward(self, x):
        x = self.features((x - self.mean) / self.std)
        return self.classifier(x.mean(dim=(2, 3), keepdim=True))

"""ResNet-18 (He et al., 2015), named and calculated as torchvision's, so that its published weights load.

Published weights are for images of more than 64 px: smaller ones keep their size in the stem, whose kernel is smaller.
"""

WIDTHS = (64, 128, 256, 512)
BLOCKS = (2, 2, 2, 2)


class Block(nn.Module):
    """Two convolutions beside a shortcut; the first halves the image where the stride is 2."""

    def __init__(self, channels, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = None
        if stride > 1 or channels != width:
            convolution = nn.Conv2d(channels, width, 1, stride, bias=False)
            self.downsample = nn.Sequential(convolution, nn.BatchNorm2d(width))

    def forward(self, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        x = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(x)) + shortcut)


class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        channels = input_shape[0]
        # Colors as in ImageNet, on the scale of 0 to 255; they are constants and no part of the weights.
        mean, std = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)) if channels == 3 else ((0.5,), (0.25,))
        self.register_buffer("mean", 255 * torch.tensor(mean).reshape(-1, 1, 1), persistent=False)
        self.register_buffer("std", 255 * torch.tensor(std).reshape(-1, 1, 1), persistent=False)
        self.is_small = max(input_shape[1:]) <= 64
        kernel, stride = (3, 1) if self.is_small else (7, 2)
        self.conv1 = nn.Conv2d(channels, 64, kernel, stride, padding=kernel // 2, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        channels = 64
        for number, (width, blocks) in enumerate(zip(WIDTHS, BLOCKS), start=1):
            strides = [1 if number == 1 else 2] + [1] * (blocks - 1)
            stage = [Block(channels if index == 0 else width, width, each) for index, each in enumerate(strides)]
            self.add_module(f"layer{number}", nn.Sequential(*stage))
            channels = width
        self.fc = nn.Linear(channels, nclasses)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        x = (x - self.mean) / self.std
        x = F.relu(self.bn1(self.conv1(x)))
        if not self.is_small:
            x = F.max_pool2d(x, 3, stride=2, padding=1)
        for stage in (self.layer1, self.layer2, self.layer3, self.layer4):
            x = stage(x)
        return self.fc(x.mean(dim=(2, 3)))

"""A convolutional network for texts (Kim, 2014): windows of 3, 4 and 5 tokens, their maxima over the text."""


class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape, vocabulary_size):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary_size, 128)
        self.windows3 = nn.Conv1d(128, 100, 3)
        self.windows4 = nn.Conv1d(128, 100, 4)
        self.windows5 = nn.Conv1d(128, 100, 5)
        self.dropout1 = nn.Dropout(0.5)
        self.logits = nn.Linear(300, nclasses)
        nn.init.normal_(self.embedding.weight, std=0.1)
        for layer in (self.windows3, self.windows4, self.windows5, self.logits):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        # 1 for a token, 0 behind the end of the text: what is written there must not count.
        known = (x != 0).float()[:, None, :]
        net = self.embedding(x).transpose(1, 2) * known  # a convolution has its channels before the places
        found = []
        for windows in (self.windows3, self.windows4, self.windows5):
            width = windows.kernel_size[0]
            here = F.relu(windows(F.pad(net, ((width - 1) // 2, width // 2))))
            found.append((here * known).amax(2))
        return self.logits(self.dropout1(torch.cat(found, dim=1)))

    def loss(self, output, y):
        return digits.classification_loss(output, y)

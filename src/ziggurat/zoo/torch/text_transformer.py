"""A small Transformer encoder for texts (Vaswani et al., 2017), its norms before the layers (Xiong et al., 2020)."""

LAYERS, HEADS, WIDTH = 2, 4, 64


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH, eps=1e-12)
        self.queries = nn.Linear(WIDTH, WIDTH)
        self.keys = nn.Linear(WIDTH, WIDTH)
        self.values = nn.Linear(WIDTH, WIDTH)
        self.joined = nn.Linear(WIDTH, WIDTH)
        self.dropout1 = nn.Dropout(0.1)
        self.norm2 = nn.LayerNorm(WIDTH, eps=1e-12)
        self.widen = nn.Linear(WIDTH, 4 * WIDTH)
        self.narrow = nn.Linear(4 * WIDTH, WIDTH)
        self.dropout2 = nn.Dropout(0.1)

    def forward(self, net, known):
        net = net + self.dropout1(self.attention(self.norm1(net), known))
        return net + self.dropout2(self.narrow(F.relu(self.widen(self.norm2(net)))))

    def attention(self, net, known):
        """Each token as a mean of all tokens, weighted by how well its query fits their keys."""
        # (N, L, WIDTH) as queries, keys and values (N, HEADS, L, WIDTH / HEADS).
        queries, keys, values = (
            layer(net).unflatten(2, (HEADS, WIDTH // HEADS)).transpose(1, 2)
            for layer in (self.queries, self.keys, self.values)
        )
        # A large number, not infinity: a text without tokens would give 0 / 0.
        mask = ((known - 1) * 1e4).to(queries.dtype)[:, None, None, :]
        mixed = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
        return self.joined(mixed.transpose(1, 2).flatten(2))


class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape, vocabulary_size):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary_size, WIDTH)
        self.places = nn.Embedding(input_shape[0], WIDTH)
        for number in range(1, LAYERS + 1):
            self.add_module(f"layer{number}", Layer())
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.logits = nn.Linear(WIDTH, nclasses)
        for layer in self.modules():
            if isinstance(layer, nn.Embedding):
                nn.init.normal_(layer.weight, std=0.1)
            elif isinstance(layer, nn.Linear):
                nn.init.xavier_uniform_(layer.weight)
                nn.init.zeros_(layer.bias)

    def forward(self, x):
        # 1 for a token, 0 behind the end of the text: nothing is read from there.
        known = (x != 0).float()
        net = self.embedding(x) + self.places.weight
        for number in range(1, LAYERS + 1):
            net = self.get_submodule(f"layer{number}")(net, known)
        net = self.norm(net) * known[:, :, None]
        tokens = known.sum(1, keepdim=True).clamp(min=1)
        return self.logits(net.sum(1) / tokens)

    def loss(self, output, y):
        return digits.classification_loss(output, y)

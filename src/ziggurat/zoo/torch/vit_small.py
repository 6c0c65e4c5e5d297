"""Vision Transformer, small, on patches of 16 x 16 px (Dosovitskiy et al., 2021).

It is named and calculated as timm's `vit_small_patch16_224`, so that its published weights load where images have 224
px: the table of places has a row for each patch. What is left of the sides beyond whole patches is not seen.
"""

LAYERS, HEADS, WIDTH, PATCH_PX = 12, 6, 384, 16


class PatchEmbedding(nn.Module):
    """(N, C, H, W) as one row of WIDTH numbers for each patch, (N, patches, WIDTH)."""

    def __init__(self, channels):
        super().__init__()
        self.proj = nn.Conv2d(channels, WIDTH, PATCH_PX, stride=PATCH_PX)

    def forward(self, x):
        return self.proj(x).flatten(2).transpose(1, 2)


class Attention(nn.Module):
    """Each patch as a mean of all patches, weighted by how well its query fits their keys."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        count, length, _ = x.shape
        parts = self.qkv(x).reshape(count, length, 3, HEADS, WIDTH // HEADS)
        queries, keys, values = parts.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(queries, keys, values)
        return self.proj(mixed.transpose(1, 2).reshape(count, length, WIDTH))


class MLP(nn.Module):
    """Two dense layers on each patch."""

    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(WIDTH, 4 * WIDTH)
        self.fc2 = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


class Block(nn.Module):
    """Attention, then dense layers, each behind a norm and beside a shortcut."""

    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH, eps=1e-6)
        self.attn = Attention()
        self.norm2 = nn.LayerNorm(WIDTH, eps=1e-6)
        self.mlp = MLP()

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        channels, height, width = input_shape
        patches = (height // PATCH_PX) * (width // PATCH_PX)
        self.cls_token = nn.Parameter(torch.empty(1, 1, WIDTH))
        self.pos_embed = nn.Parameter(torch.empty(1, 1 + patches, WIDTH))
        self.patch_embed = PatchEmbedding(channels)
        self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm(WIDTH, eps=1e-6)
        self.head = nn.Linear(WIDTH, nclasses)
        nn.init.normal_(self.cls_token, std=1e-6)
        nn.init.trunc_normal_(self.pos_embed, std=0.02)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.trunc_normal_(module.weight, std=0.02)
                nn.init.zeros_(module.bias)

    def forward(self, x):
        x = self.patch_embed(x / 127.5 - 1)  # 0 to 255 as -1 to 1, as the published weights expect it
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], dim=1) + self.pos_embed
        return self.head(self.norm(self.blocks(x))[:, 0])

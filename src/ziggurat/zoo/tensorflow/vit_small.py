"""Vision Transformer, small, on patches of 16 x 16 px (Dosovitskiy et al., 2021).

It is named and calculated as timm's `vit_small_patch16_224`, so that its published weights load where images have 224
px: the table of places has a row for each patch. What is left of the sides beyond whole patches is not seen.
"""

LAYERS, HEADS, WIDTH, PATCH_PX = 12, 6, 384, 16


def layer_norm(net, scope):
    """Mean 0 and deviation 1 of the numbers of each patch, then scaled and shifted."""
    with tf.variable_scope(scope):
        channels = [net.shape[-1]]
        weight = tf.get_variable("weight", channels, initializer=tf.ones_initializer())
        bias = tf.get_variable("bias", channels, initializer=tf.zeros_initializer())
        mean, variance = tf.nn.moments(net, [-1], keepdims=True)
        return (net - mean) * tf.rsqrt(variance + 1e-6) * weight + bias


def gelu(net):
    """x times the share of a normal distribution that is below x (Hendrycks and Gimpel, 2016)."""
    return 0.5 * net * (1 + tf.math.erf(net / np.sqrt(2).astype(np.float32)))


def dense(net, width, scope):
    """A dense layer over the last axis."""
    with tf.variable_scope(scope):
        normal = tf.truncated_normal_initializer(0, 0.02)
        weight = tf.get_variable("weight", [net.shape[-1], width], initializer=normal)
        bias = tf.get_variable("bias", [width], initializer=tf.zeros_initializer())
        return tf.tensordot(net, weight, 1) + bias


def patches(net, scope):
    """(N, H, W, C) as one row of WIDTH numbers for each patch, (N, patches, WIDTH)."""
    channels = int(net.shape[-1])
    limit = 1 / np.sqrt(PATCH_PX * PATCH_PX * channels)
    uniform = tf.random_uniform_initializer(-limit, limit)
    with tf.variable_scope(scope):
        weight = tf.get_variable("weight", [PATCH_PX, PATCH_PX, channels, WIDTH], initializer=uniform)
        bias = tf.get_variable("bias", [WIDTH], initializer=uniform)
        net = tf.nn.conv2d(net, weight, PATCH_PX, "VALID") + bias
        return tf.reshape(net, [-1, net.shape[1] * net.shape[2], WIDTH])


def attention(net):
    """Each patch as a mean of all patches, weighted by how well its query fits their keys."""
    length = net.shape[1]
    parts = tf.reshape(dense(net, 3 * WIDTH, "attn/qkv"), [-1, length, 3, HEADS, WIDTH // HEADS])
    queries, keys, values = tf.unstack(tf.transpose(parts, [2, 0, 3, 1, 4]))
    scores = tf.matmul(queries, keys, transpose_b=True) / np.sqrt(WIDTH // HEADS).astype(np.float32)
    mixed = tf.transpose(tf.matmul(tf.nn.softmax(scores), values), [0, 2, 1, 3])
    return dense(tf.reshape(mixed, [-1, length, WIDTH]), WIDTH, "attn/proj")


def block(net):
    """Attention, then dense layers, each behind a norm and beside a shortcut."""
    net += attention(layer_norm(net, "norm1"))
    inner = gelu(dense(layer_norm(net, "norm2"), 4 * WIDTH, "mlp/fc1"))
    return net + dense(inner, WIDTH, "mlp/fc2")


class UserModel(Tower):
    @model_property
    def inference(self):
        # 0 to 255 as -1 to 1, as the published weights expect it.
        net = patches(self.x / 127.5 - 1, "patch_embed/proj")
        first = tf.get_variable("cls_token", [1, 1, WIDTH], initializer=tf.random_normal_initializer(0, 1e-6))
        places = tf.get_variable(
            "pos_embed", [1, 1 + net.shape[1], WIDTH], initializer=tf.truncated_normal_initializer(0, 0.02)
        )
        net = tf.concat([tf.tile(first, [tf.shape(net)[0], 1, 1]), net], axis=1) + places
        for number in range(LAYERS):
            with tf.variable_scope(f"blocks/{number}"):
                net = block(net)
        return dense(layer_norm(net[:, 0], "norm"), self.nclasses, "head")

    @model_property
    def loss(self):
        accuracy = digits.classification_accuracy(self.inference, self.y)
        self.summaries.append(tf.summary.scalar(accuracy.op.name, accuracy))
        return digits.classification_loss(self.inference, self.y)

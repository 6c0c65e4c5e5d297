"""A small Transformer encoder for texts (Vaswani et al., 2017), its norms before the layers (Xiong et al., 2020)."""

LAYERS, HEADS, WIDTH = 2, 4, 64


def heads(net, name):
    """(N, L, WIDTH) as queries, keys or values (N, HEADS, L, WIDTH / HEADS)."""
    net = slim.fully_connected(net, WIDTH, activation_fn=None, scope=name)
    return tf.transpose(tf.reshape(net, [-1, net.shape[1], HEADS, WIDTH // HEADS]), [0, 2, 1, 3])


def attention(net, known):
    """Each token as a mean of all tokens, weighted by how well its query fits their keys."""
    queries, keys, values = (heads(net, name) for name in ("queries", "keys", "values"))
    scores = tf.matmul(queries, keys, transpose_b=True) / np.sqrt(WIDTH // HEADS).astype(np.float32)
    scores += (known[:, tf.newaxis, tf.newaxis, :] - 1) * 1e9
    mixed = tf.transpose(tf.matmul(tf.nn.softmax(scores), values), [0, 2, 1, 3])
    return slim.fully_connected(tf.reshape(mixed, [-1, net.shape[1], WIDTH]), WIDTH, activation_fn=None, scope="joined")


def layer(net, known, is_training):
    branch = attention(slim.layer_norm(net, begin_norm_axis=2, scope="norm1"), known)
    net += slim.dropout(branch, 0.9, is_training=is_training, scope="dropout1")
    branch = slim.fully_connected(slim.layer_norm(net, begin_norm_axis=2, scope="norm2"), 4 * WIDTH, scope="widen")
    branch = slim.fully_connected(branch, WIDTH, activation_fn=None, scope="narrow")
    return net + slim.dropout(branch, 0.9, is_training=is_training, scope="dropout2")


class UserModel(Tower):
    @model_property
    def inference(self):
        length = self.input_shape[0]
        # 1 for a token, 0 behind the end of the text: nothing is read from there.
        known = tf.cast(tf.not_equal(self.x, 0), tf.float32)
        normal = tf.random_normal_initializer(0, 0.1)
        table = tf.get_variable("embedding/weights", [self.vocabulary_size, WIDTH], initializer=normal)
        places = tf.get_variable("places/weights", [length, WIDTH], initializer=normal)
        net = tf.nn.embedding_lookup(table, self.x) + places
        for number in range(1, LAYERS + 1):
            with tf.variable_scope(f"layer{number}"):
                net = layer(net, known, self.is_training)
        net = slim.layer_norm(net, begin_norm_axis=2, scope="norm") * known[:, :, tf.newaxis]
        tokens = tf.maximum(tf.reduce_sum(known, axis=1, keepdims=True), 1)
        return slim.fully_connected(
            tf.reduce_sum(net, axis=1) / tokens, self.nclasses, activation_fn=None, scope="logits"
        )

    @model_property
    def loss(self):
        accuracy = digits.classification_accuracy(self.inference, self.y)
        self.summaries.append(tf.summary.scalar(accuracy.op.name, accuracy))
        return digits.classification_loss(self.inference, self.y)

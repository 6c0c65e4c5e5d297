"""A convolutional network for texts (Kim, 2014): windows of 3, 4 and 5 tokens, their maxima over the text."""


class UserModel(Tower):
    @model_property
    def inference(self):
        # 1 for a token, 0 behind the end of the text: what is written there must not count.
        known = tf.cast(tf.not_equal(self.x, 0), tf.float32)[:, :, tf.newaxis]
        table = tf.get_variable(
            "embedding/weights", [self.vocabulary_size, 128], initializer=tf.random_normal_initializer(0, 0.1)
        )
        net = (tf.nn.embedding_lookup(table, self.x) * known)[:, :, tf.newaxis, :]
        found = []
        for width in (3, 4, 5):
            windows = slim.conv2d(net, 100, [width, 1], scope=f"windows{width}")
            found.append(tf.reduce_max(windows[:, :, 0, :] * known, axis=1))
        net = slim.dropout(tf.concat(found, axis=1), 0.5, is_training=self.is_training, scope="dropout1")
        return slim.fully_connected(net, self.nclasses, activation_fn=None, scope="logits")

    @model_property
    def loss(self):
        accuracy = digits.classification_accuracy(self.inference, self.y)
        self.summaries.append(tf.summary.scalar(accuracy.op.name, accuracy))
        return digits.classification_loss(self.inference, self.y)

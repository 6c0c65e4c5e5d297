"""A small convolutional network for pictures with several labels at once: one logit for each label."""


class UserModel(Tower):
    @model_property
    def inference(self):
        net = self.x / 64.0
        with slim.arg_scope(
            [slim.conv2d],
            normalizer_fn=slim.batch_norm,
            normalizer_params={"is_training": self.is_training, "decay": 0.95, "scale": True},
            weights_regularizer=slim.l2_regularizer(0.0005),
        ):
            for number, width in enumerate((32, 64, 128), start=1):
                net = slim.conv2d(net, width, [3, 3], scope=f"conv{number}a")
                net = slim.conv2d(net, width, [3, 3], scope=f"conv{number}b")
                net = slim.max_pool2d(net, [2, 2], scope=f"pool{number}")
        net = tf.reduce_mean(net, axis=[1, 2])
        net = slim.dropout(net, 0.7, is_training=self.is_training, scope="dropout1")
        return slim.fully_connected(net, self.nclasses, activation_fn=None, scope="logits")

    @model_property
    def loss(self):
        is_right = tf.equal(self.inference > 0, self.y > 0.5)
        self.summaries.append(tf.summary.scalar("label_accuracy", tf.reduce_mean(tf.cast(is_right, tf.float32))))
        losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=self.y, logits=self.inference)
        return tf.reduce_mean(losses)

"""GoogLeNet (Szegedy et al., 2014): nine inception modules, with batch norm instead of the two auxiliary outputs."""

# Widths of 1x1; 1x1 and 3x3; 1x1 and 5x5; pooled 1x1 (table 1 of the paper).
MODULES = {
    "3a": (64, 96, 128, 16, 32, 32),
    "3b": (128, 128, 192, 32, 96, 64),
    "4a": (192, 96, 208, 16, 48, 64),
    "4b": (160, 112, 224, 24, 64, 64),
    "4c": (128, 128, 256, 24, 64, 64),
    "4d": (112, 144, 288, 32, 64, 64),
    "4e": (256, 160, 320, 32, 128, 128),
    "5a": (256, 160, 320, 32, 128, 128),
    "5b": (384, 192, 384, 48, 128, 128),
}


def inception(net, name):
    one, three_in, three, five_in, five, pooled = MODULES[name]
    with tf.variable_scope(f"inception{name}"):
        branches = [
            slim.conv2d(net, one, [1, 1], scope="conv1"),
            slim.conv2d(slim.conv2d(net, three_in, [1, 1], scope="conv3_in"), three, [3, 3], scope="conv3"),
            slim.conv2d(slim.conv2d(net, five_in, [1, 1], scope="conv5_in"), five, [5, 5], scope="conv5"),
            slim.conv2d(slim.max_pool2d(net, [3, 3], 1, padding="SAME"), pooled, [1, 1], scope="pooled"),
        ]
        return tf.concat(branches, axis=3)


class UserModel(Tower):
    @model_property
    def inference(self):
        net = self.x / 64.0
        with slim.arg_scope(
            [slim.conv2d],
            normalizer_fn=slim.batch_norm,
            normalizer_params={"is_training": self.is_training, "decay": 0.95, "scale": True},
            weights_regularizer=slim.l2_regularizer(0.0002),
        ):
            net = slim.conv2d(net, 64, [7, 7], 2, scope="conv1")
            net = slim.max_pool2d(net, [3, 3], 2, padding="SAME", scope="pool1")
            net = slim.conv2d(net, 64, [1, 1], scope="conv2_in")
            net = slim.conv2d(net, 192, [3, 3], scope="conv2")
            net = slim.max_pool2d(net, [3, 3], 2, padding="SAME", scope="pool2")
            for stage in ("3a 3b", "4a 4b 4c 4d 4e", "5a 5b"):
                for name in stage.split():
                    net = inception(net, name)
                if stage != "5a 5b":
                    net = slim.max_pool2d(net, [3, 3], 2, padding="SAME", scope=f"pool{stage[0]}")
        net = tf.reduce_mean(net, axis=[1, 2])
        net = slim.dropout(net, 0.6, is_training=self.is_training, scope="dropout1")
        return slim.fully_connected(net, self.nclasses, activation_fn=None, scope="logits")

    @model_property
    def loss(self):
        accuracy = digits.classification_accuracy(self.inference, self.y)
        self.summaries.append(tf.summary.scalar(accuracy.op.name, accuracy))
        return digits.classification_loss(self.inference, self.y)

"""VGG-16 (Simonyan and Zisserman, 2014): thirteen convolutions of 3x3 in five stages, three dense layers."""


class UserModel(Tower):
    @model_property
    def inference(self):
        net = self.x / 64.0
        with slim.arg_scope(
            [slim.conv2d, slim.fully_connected],
            weights_initializer=tf.contrib.layers.variance_scaling_initializer(),
            weights_regularizer=slim.l2_regularizer(0.0005),
        ):
            for stage, (layers, width) in enumerate(((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)), start=1):
                net = slim.repeat(net, layers, slim.conv2d, width, [3, 3], scope=f"conv{stage}")
                net = slim.max_pool2d(net, [2, 2], scope=f"pool{stage}")
            net = slim.flatten(net)
            net = slim.fully_connected(net, 4096, scope="fc6")
            net = slim.dropout(net, 0.5, is_training=self.is_training, scope="dropout6")
            net = slim.fully_connected(net, 4096, scope="fc7")
            net = slim.dropout(net, 0.5, is_training=self.is_training, scope="dropout7")
            return slim.fully_connected(net, self.nclasses, activation_fn=None, scope="fc8")

    @model_property
    def loss(self):
        accuracy = digits.classification_accuracy(self.inference, self.y)
        self.summaries.append(tf.summary.scalar(accuracy.op.name, accuracy))
        return digits.classification_loss(self.inference, self.y)

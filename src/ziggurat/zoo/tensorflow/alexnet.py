"""AlexNet (Krizhevsky et al., 2012), in the one-tower form of arXiv 1404.5997, with local response normalisation."""


class UserModel(Tower):
    @model_property
    def inference(self):
        net = self.x / 64.0
        with slim.arg_scope(
            [slim.conv2d, slim.fully_connected],
            weights_initializer=tf.contrib.layers.variance_scaling_initializer(),
            weights_regularizer=slim.l2_regularizer(0.0005),
        ):
            net = tf.pad(net, [[0, 0], [2, 2], [2, 2], [0, 0]])  # 224 pixels give 55 x 55, and 6 x 6 at the end
            net = slim.conv2d(net, 96, [11, 11], 4, padding="VALID", scope="conv1")
            net = tf.nn.local_response_normalization(net, depth_radius=2, bias=2.0, alpha=1e-4, beta=0.75)
            net = slim.max_pool2d(net, [3, 3], 2, scope="pool1")
            net = slim.conv2d(net, 256, [5, 5], scope="conv2")
            net = tf.nn.local_response_normalization(net, depth_radius=2, bias=2.0, alpha=1e-4, beta=0.75)
            net = slim.max_pool2d(net, [3, 3], 2, scope="pool2")
            net = slim.conv2d(net, 384, [3, 3], scope="conv3")
            net = slim.conv2d(net, 384, [3, 3], scope="conv4")
            net = slim.conv2d(net, 256, [3, 3], scope="conv5")
            net = slim.max_pool2d(net, [3, 3], 2, scope="pool5")
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

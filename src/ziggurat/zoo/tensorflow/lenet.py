"""LeNet-5 (LeCun et al., 1998) in the form that DIGITS's users know: two convolutions, two dense layers."""


class UserModel(Tower):
    @model_property
    def inference(self):
        # Divides by the standard deviation of MNIST, so that the first layer sees numbers around one.
        net = self.x * 0.0125
        with slim.arg_scope(
            [slim.conv2d, slim.fully_connected],
            weights_initializer=tf.contrib.layers.xavier_initializer(),
            weights_regularizer=slim.l2_regularizer(0.0005),
        ):
            net = slim.conv2d(net, 20, [5, 5], padding="VALID", scope="conv1")
            net = slim.max_pool2d(net, [2, 2], scope="pool1")
            net = slim.conv2d(net, 50, [5, 5], padding="VALID", scope="conv2")
            net = slim.max_pool2d(net, [2, 2], scope="pool2")
            net = slim.flatten(net)
            net = slim.fully_connected(net, 500, scope="fc1")
            net = slim.dropout(net, 0.5, is_training=self.is_training, scope="dropout1")
            return slim.fully_connected(net, self.nclasses, activation_fn=None, scope="fc2")

    @model_property
    def loss(self):
        accuracy = digits.classification_accuracy(self.inference, self.y)
        self.summaries.append(tf.summary.scalar(accuracy.op.name, accuracy))
        return digits.classification_loss(self.inference, self.y)

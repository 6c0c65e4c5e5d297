"""A multilayer perceptron for tables: embedded categories, two hidden layers; it predicts numbers, or classes."""


def embedded(column, count, name):
    """A category as a few numbers that are learned; a product with one-hot rows is a look-up."""
    with tf.variable_scope(name):
        table = tf.get_variable(
            "weights", [count, min(50, (count + 1) // 2)], initializer=tf.random_normal_initializer(0, 0.1)
        )
        return tf.matmul(tf.one_hot(tf.cast(column, tf.int32), count), table)


class UserModel(Tower):
    @model_property
    def inference(self):
        categories = self.categories or (0,) * self.input_shape[0]
        numbers = np.array([place for place, count in enumerate(categories) if not count], np.int64)
        parts = [tf.gather(self.x, numbers, axis=1)]
        for place, count in enumerate(categories):
            if count:
                parts.append(embedded(self.x[:, place], count, f"category{place}"))
        net = tf.concat(parts, axis=1)
        with slim.arg_scope(
            [slim.fully_connected], weights_initializer=tf.contrib.layers.variance_scaling_initializer()
        ):
            net = slim.fully_connected(net, 128, scope="fc1")
            net = slim.dropout(net, 0.8, is_training=self.is_training, scope="dropout1")
            net = slim.fully_connected(net, 64, scope="fc2")
            net = slim.dropout(net, 0.8, is_training=self.is_training, scope="dropout2")
        outputs = self.nclasses or int(np.prod(self.target_shape))
        net = slim.fully_connected(net, outputs, activation_fn=None, scope="output")
        return net if self.nclasses else net * self.target_std + self.target_mean

    @model_property
    def loss(self):
        if self.nclasses:
            accuracy = digits.classification_accuracy(self.inference, self.y)
            self.summaries.append(tf.summary.scalar(accuracy.op.name, accuracy))
            return digits.classification_loss(self.inference, self.y)
        error = self.inference - tf.reshape(self.y, tf.shape(self.inference))
        self.summaries.append(tf.summary.scalar("mean_absolute_error", tf.reduce_mean(tf.abs(error))))
        # In units of the deviation, so that one learning rate does for targets of any size.
        return tf.reduce_mean(tf.square(error / self.target_std))

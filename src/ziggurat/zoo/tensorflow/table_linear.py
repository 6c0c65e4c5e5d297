"""A linear model for tables: numbers as they are, categories one-hot; it predicts numbers, or classes."""


class UserModel(Tower):
    @model_property
    def inference(self):
        categories = self.categories or (0,) * self.input_shape[0]
        numbers = np.array([place for place, count in enumerate(categories) if not count], np.int64)
        parts = [tf.gather(self.x, numbers, axis=1)]
        for place, count in enumerate(categories):
            if count:
                parts.append(tf.one_hot(tf.cast(self.x[:, place], tf.int32), count))
        outputs = self.nclasses or int(np.prod(self.target_shape))
        net = slim.fully_connected(
            tf.concat(parts, axis=1),
            outputs,
            activation_fn=None,
            weights_initializer=tf.zeros_initializer(),
            scope="linear",
        )
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

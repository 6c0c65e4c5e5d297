"""A linear regression: one number from all numbers of the input."""


class UserModel(Tower):
    @model_property
    def inference(self):
        return slim.fully_connected(
            slim.flatten(self.x), 1, activation_fn=None, weights_initializer=tf.zeros_initializer(), scope="linear"
        )

    @model_property
    def loss(self):
        error = self.inference - tf.reshape(tf.cast(self.y, tf.float32), [-1, 1])
        self.summaries.append(tf.summary.scalar("mean_absolute_error", tf.reduce_mean(tf.abs(error))))
        return tf.reduce_mean(tf.square(error))

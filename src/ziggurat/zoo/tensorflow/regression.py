"""A linear regression: one number, or a few, from all numbers of the input."""


class UserModel(Tower):
    @model_property
    def inference(self):
        numbers = int(np.prod(self.target_shape))
        return slim.fully_connected(
            slim.flatten(self.x),
            numbers,
            activation_fn=None,
            weights_initializer=tf.zeros_initializer(),
            scope="linear",
        )

    @model_property
    def loss(self):
        error = self.inference - tf.reshape(tf.cast(self.y, tf.float32), tf.shape(self.inference))
        self.summaries.append(tf.summary.scalar("mean_absolute_error", tf.reduce_mean(tf.abs(error))))
        return tf.reduce_mean(tf.square(error))

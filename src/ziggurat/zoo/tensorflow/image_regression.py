"""A small convolutional network that predicts numbers from a picture: three stages, then one number for each target."""


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
            for number, width in enumerate((16, 32, 64), start=1):
                net = slim.conv2d(net, width, [3, 3], scope=f"conv{number}a")
                net = slim.conv2d(net, width, [3, 3], scope=f"conv{number}b")
                net = slim.max_pool2d(net, [2, 2], scope=f"pool{number}")
        # Where things are matters to numbers such as positions, so a coarse map is kept, not its mean alone.
        cell = [max(1, int(side) // 4) for side in net.shape[1:3]]
        net = slim.avg_pool2d(net, cell, cell, scope="cells")
        net = slim.fully_connected(slim.flatten(net), 128, scope="fc1")
        net = slim.fully_connected(net, int(np.prod(self.target_shape)), activation_fn=None, scope="output")
        return net * self.target_std + self.target_mean

    @model_property
    def loss(self):
        error = self.inference - tf.reshape(self.y, tf.shape(self.inference))
        self.summaries.append(tf.summary.scalar("mean_absolute_error", tf.reduce_mean(tf.abs(error))))
        # In units of the deviation, so that one learning rate does for targets of any size.
        return tf.reduce_mean(tf.square(error / self.target_std))

"""A small convolutional network from picture to picture, such as from a noisy one to a clean one.

Its output is 0 to 1. The target is a picture of the same size, 0 to 255, and is divided by 255; without a target, the
input is its own.
"""


class UserModel(Tower):
    @model_property
    def inference(self):
        picture = self.x / 255.0
        channels = (self.target_shape or self.input_shape)[-1]
        with slim.arg_scope([slim.conv2d], weights_initializer=tf.contrib.layers.variance_scaling_initializer()):
            net = slim.conv2d(picture, 32, [3, 3], scope="conv1")
            for number in range(2, 5):
                net = slim.conv2d(net, 32, [3, 3], scope=f"conv{number}")
        # What is to change is small at first: where the channels are the same, the input is added to it.
        change = slim.conv2d(
            net,
            channels,
            [3, 3],
            activation_fn=None,
            weights_initializer=tf.truncated_normal_initializer(0, 0.01),
            scope="change",
        )
        net = picture + change if channels == picture.shape[-1] else change + 0.5
        if not self.is_training:
            net = tf.clip_by_value(net, 0.0, 1.0)
            self.summaries.append(tf.summary.image("output", net, max_outputs=4))
        return net

    @model_property
    def loss(self):
        return digits.mse_loss(self.inference, (self.x if self.y is None else self.y) / 255.0)

"""An auto-encoder of dense layers: the picture through a bottleneck of 50 numbers and back."""


class UserModel(Tower):
    @model_property
    def inference(self):
        height, width, channels = self.input_shape
        net = slim.flatten(self.x / 255.0)
        with slim.arg_scope([slim.fully_connected], weights_initializer=tf.contrib.layers.xavier_initializer()):
            net = slim.fully_connected(net, 300, scope="encode1")
            net = slim.fully_connected(net, 50, scope="encode2")
            net = slim.fully_connected(net, 300, scope="decode1")
            net = slim.fully_connected(net, height * width * channels, activation_fn=tf.nn.sigmoid, scope="decode2")
        picture = tf.reshape(net, [-1, height, width, channels])
        self.summaries.append(tf.summary.image("reconstruction", picture, max_outputs=4))
        return picture

    @model_property
    def loss(self):
        return digits.mse_loss(self.inference, self.x / 255.0)

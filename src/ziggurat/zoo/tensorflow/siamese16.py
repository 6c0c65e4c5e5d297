"""A siamese network with embeddings of 16 numbers, from which the nearest neighbor tells the class."""


def embed(net):
    net = slim.conv2d(net, 20, [5, 5], padding="VALID", scope="conv1")
    net = slim.max_pool2d(net, [2, 2], scope="pool1")
    net = slim.conv2d(net, 50, [5, 5], padding="VALID", scope="conv2")
    net = slim.max_pool2d(net, [2, 2], scope="pool2")
    net = slim.fully_connected(slim.flatten(net), 500, scope="fc1")
    return slim.fully_connected(net, 16, activation_fn=None, scope="embedding")


class UserModel(Tower):
    @model_property
    def inference(self):
        left, right = tf.split(self.x / 255.0, 2, axis=3)
        with slim.arg_scope([slim.conv2d, slim.fully_connected], weights_regularizer=slim.l2_regularizer(0.0005)):
            with tf.variable_scope("embed"):
                first = embed(left)
            with tf.variable_scope("embed", reuse=True):
                second = embed(right)
        return [first, second]

    @model_property
    def loss(self):
        first, second = self.inference
        return digits.contrastive_loss(first, second, self.y, margin=1.0)

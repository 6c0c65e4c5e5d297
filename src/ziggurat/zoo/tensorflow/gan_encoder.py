"""A conditional generative adversarial network (Mirza and Osindero, 2014) with an encoder (Perarnau et al., 2016).

The generator makes pictures of noise and attributes, which are the shares of the classes; the encoder finds both in a
picture. So a picture is taken apart and made anew with other attributes: give `attributes` or `noise` to a prediction.
For small pictures, such as 28 x 28 or 32 x 32, with or without classes.
"""

NOISE = 32


def leaky(net):
    return tf.maximum(0.2 * net, net)


def with_maps(pictures, attributes):
    """Each attribute is one more channel, the same at each place."""
    shape = tf.shape(pictures)
    maps = tf.ones([shape[0], shape[1], shape[2], 1]) * attributes[:, tf.newaxis, tf.newaxis, :]
    return tf.concat([pictures, maps], axis=3)


def generator(noise, attributes, shape, is_training):
    height, width, channels = shape
    rows, columns = -(-height // 4), -(-width // 4)
    with slim.arg_scope(
        [slim.fully_connected, slim.conv2d_transpose],
        normalizer_fn=slim.batch_norm,
        normalizer_params={"is_training": is_training, "decay": 0.95, "scale": True},
        weights_initializer=tf.random_normal_initializer(0, 0.02),
    ):
        net = slim.fully_connected(tf.concat([noise, attributes], axis=1), rows * columns * 64, scope="fc1")
        net = tf.reshape(net, [-1, rows, columns, 64])
        net = slim.conv2d_transpose(net, 32, [4, 4], 2, scope="up1")
        net = slim.conv2d_transpose(
            net, channels, [4, 4], 2, activation_fn=tf.nn.sigmoid, normalizer_fn=None, scope="up2"
        )
    return net[:, :height, :width, :]


def discriminator(pictures, attributes, is_training):
    with slim.arg_scope([slim.conv2d], activation_fn=leaky, weights_initializer=tf.random_normal_initializer(0, 0.02)):
        net = slim.conv2d(with_maps(2 * pictures - 1, attributes), 32, [4, 4], 2, scope="conv1")
        net = slim.conv2d(net, 64, [4, 4], 2, scope="conv2")
    net = slim.dropout(slim.flatten(net), 0.7, is_training=is_training, scope="dropout1")
    return slim.fully_connected(net, 1, activation_fn=None, scope="fc1")


def encoder(pictures, classes):
    """Return noise, and a logit for each class."""
    net = slim.conv2d(2 * pictures - 1, 32, [4, 4], 2, scope="conv1")
    net = slim.flatten(slim.conv2d(net, 64, [4, 4], 2, scope="conv2"))
    net = slim.fully_connected(net, 128, scope="fc1")
    with slim.arg_scope([slim.fully_connected], activation_fn=None):
        logits = slim.fully_connected(net, classes, scope="attributes") if classes else None
        return slim.fully_connected(net, NOISE, scope="noise"), logits


def shares(attributes):
    """Any numbers are made shares of the classes: not below 0, and 1 in all."""
    attributes = tf.nn.relu(attributes)
    return attributes / (tf.reduce_sum(attributes, axis=1, keepdims=True) + 1e-6)


class UserModel(Tower):
    @model_property
    def found(self):
        with tf.variable_scope("encoder"):
            return encoder(self.x / 255.0, self.nclasses or 0)

    @model_property
    def given(self):
        noise, logits = self.found
        count = tf.shape(self.x)[0]
        attributes = tf.nn.softmax(logits) if self.nclasses else tf.zeros([count, 0])
        if self.is_training:
            # Noise from the number of the step: a resumed job gets what it would have had.
            step = tf.cast(tf.train.get_or_create_global_step(), tf.int64)
            noise = tf.random.stateless_normal([count, NOISE], tf.stack([step, 1]))
            attributes = tf.one_hot(self.y, self.nclasses) if self.nclasses else attributes
        if self.is_inference:
            noise = tf.placeholder_with_default(noise, [None, NOISE], name="noise")
            self.inference_inputs["noise"] = noise
            if self.nclasses:
                attributes = tf.placeholder_with_default(attributes, [None, self.nclasses], name="attributes")
                self.inference_inputs["attributes"] = attributes
                attributes = shares(attributes)
        return noise, attributes

    @model_property
    def inference(self):
        noise, attributes = self.given
        with tf.variable_scope("generator"):
            pictures = generator(noise, attributes, self.input_shape, self.is_training)
        self.summaries.append(tf.summary.image("generated", pictures, max_outputs=8))
        return [pictures, self.found[0]]

    @model_property
    def loss(self):
        made, (noise, attributes) = self.inference[0], self.given
        with tf.variable_scope("discriminator"):
            real = discriminator(self.x / 255.0, attributes, self.is_training)
        with tf.variable_scope("discriminator", reuse=True):
            fake = discriminator(made, attributes, self.is_training)
        with tf.variable_scope("encoder", reuse=True):
            again, _ = encoder(made, self.nclasses or 0)

        def cross_entropy(logits, label):
            labels = label * tf.ones_like(logits)
            return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))

        finding = tf.reduce_mean(tf.square(again - noise))
        if self.nclasses:
            finding += digits.classification_loss(self.found[1], self.y)
        losses = {
            "discriminator": (cross_entropy(real, 0.9) + cross_entropy(fake, 0.0)) / 2,
            "generator": cross_entropy(fake, 1.0),
            "encoder": finding,
        }
        for name, value in losses.items():
            self.summaries.append(tf.summary.scalar(f"{name}_loss", value))
        return [{"loss": value, "vars": self.variables(name)} for name, value in losses.items()]

    def variables(self, scope):
        return [each for each in tf.trainable_variables() if each.op.name.startswith(f"model/{scope}/")]

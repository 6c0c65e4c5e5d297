"""A generative adversarial network (Goodfellow et al., 2014) of convolutions as in DCGAN (Radford et al., 2016).

The generator makes pictures of noise; the discriminator learns to tell them from those of the dataset, and so teaches
it. For small pictures, such as 28 x 28 or 32 x 32. Labels are not looked at.
"""

NOISE = 64


def leaky(net):
    return tf.maximum(0.2 * net, net)


def generator(noise, shape, is_training):
    height, width, channels = shape
    rows, columns = -(-height // 4), -(-width // 4)
    with slim.arg_scope(
        [slim.fully_connected, slim.conv2d_transpose],
        normalizer_fn=slim.batch_norm,
        normalizer_params={"is_training": is_training, "decay": 0.95, "scale": True},
        weights_initializer=tf.random_normal_initializer(0, 0.02),
    ):
        net = slim.fully_connected(noise, rows * columns * 128, scope="fc1")
        net = tf.reshape(net, [-1, rows, columns, 128])
        net = slim.conv2d_transpose(net, 64, [4, 4], 2, scope="up1")
        net = slim.conv2d_transpose(
            net, channels, [4, 4], 2, activation_fn=tf.nn.sigmoid, normalizer_fn=None, scope="up2"
        )
    return net[:, :height, :width, :]


def discriminator(pictures, is_training):
    # No batch norm: its averages would mix the two kinds of pictures that it is to tell apart.
    with slim.arg_scope([slim.conv2d], activation_fn=leaky, weights_initializer=tf.random_normal_initializer(0, 0.02)):
        net = slim.conv2d(2 * pictures - 1, 64, [4, 4], 2, scope="conv1")
        net = slim.conv2d(net, 128, [4, 4], 2, scope="conv2")
    net = slim.dropout(slim.flatten(net), 0.7, is_training=is_training, scope="dropout1")
    return slim.fully_connected(net, 1, activation_fn=None, scope="fc1")


class UserModel(Tower):
    @model_property
    def inference(self):
        # Noise from the number of the step: a resumed job gets what it would have had. Elsewhere it is always the same.
        step = tf.cast(tf.train.get_or_create_global_step() if self.is_training else 0, tf.int64)
        noise = tf.random.stateless_normal([tf.shape(self.x)[0], NOISE], tf.stack([step, 1]))
        if self.is_inference:
            noise = tf.placeholder_with_default(noise, [None, NOISE], name="noise")
            self.inference_inputs["noise"] = noise
        with tf.variable_scope("generator"):
            pictures = generator(noise, self.input_shape, self.is_training)
        self.summaries.append(tf.summary.image("generated", pictures, max_outputs=8))
        return pictures

    @model_property
    def loss(self):
        with tf.variable_scope("discriminator"):
            real = discriminator(self.x / 255.0, self.is_training)
        with tf.variable_scope("discriminator", reuse=True):
            made = discriminator(self.inference, self.is_training)

        def cross_entropy(logits, label):
            labels = label * tf.ones_like(logits)
            return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))

        telling = (cross_entropy(real, 0.9) + cross_entropy(made, 0.0)) / 2
        making = cross_entropy(made, 1.0)
        self.summaries.append(tf.summary.scalar("discriminator_loss", telling))
        self.summaries.append(tf.summary.scalar("generator_loss", making))
        return [
            {"loss": loss, "vars": self.variables(name)}
            for loss, name in ((telling, "discriminator"), (making, "generator"))
        ]

    def variables(self, scope):
        return [each for each in tf.trainable_variables() if each.op.name.startswith(f"model/{scope}/")]

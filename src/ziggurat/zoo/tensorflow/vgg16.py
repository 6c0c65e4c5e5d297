"""VGG-16 without batch norm (Simonyan and Zisserman, 2014), named and calculated as torchvision's."""

STAGES = ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512))


def conv2d(net, width, scope):
    with tf.variable_scope(scope):
        normal = tf.variance_scaling_initializer(2.0, "fan_out", "untruncated_normal")
        weight = tf.get_variable("weight", [3, 3, net.shape[-1], width], initializer=normal)
        bias = tf.get_variable("bias", [width], initializer=tf.zeros_initializer())
        return tf.nn.relu(tf.nn.conv2d(net, weight, 1, "SAME") + bias)


def dense(net, width, scope):
    with tf.variable_scope(scope):
        normal = tf.random_normal_initializer(0, 0.01)
        weight = tf.get_variable("weight", [net.shape[-1], width], initializer=normal)
        bias = tf.get_variable("bias", [width], initializer=tf.zeros_initializer())
        return tf.matmul(net, weight) + bias


def shares(side, places=7):
    """(places, side): what each row or column of an image adds to a mean over one of 7 stretches of it."""
    table = np.zeros((places, side), np.float32)
    for place in range(places):
        first, end = place * side // places, -(-(place + 1) * side // places)
        table[place, first:end] = 1 / (end - first)
    return table


class UserModel(Tower):
    @model_property
    def inference(self):
        # Colors as in ImageNet, on the scale of 0 to 255.
        mean, std = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)) if self.input_shape[2] == 3 else (0.5, 0.25)
        net = (self.x - 255 * np.float32(mean)) / (255 * np.float32(std))
        number = 0
        for stage, (convolutions, width) in enumerate(STAGES, start=1):
            for _ in range(convolutions):
                net = conv2d(net, width, f"features/{number}")
                number += 2  # the ReLU has a number too, and the pooling
            net = tf.nn.max_pool2d(net, 2, 2, "VALID", name=f"maxpool{stage}")
            number += 1
        # Channels first, as PyTorch has them when it makes one row of the image.
        net = tf.transpose(net, [0, 3, 1, 2])
        height, width = net.shape[2:]
        if (height, width) != (7, 7):
            # The dense layers always see 7 x 7 places: so many remain of 224 px, others are averaged or repeated.
            net = tf.tensordot(net, shares(int(width)), [[3], [1]])
            net = tf.transpose(tf.tensordot(net, shares(int(height)), [[2], [1]]), [0, 1, 3, 2])
        net = tf.reshape(net, [-1, 512 * 7 * 7])
        net = tf.nn.relu(dense(net, 4096, "classifier/0"))
        net = slim.dropout(net, 0.5, is_training=self.is_training, scope="classifier/2")
        net = tf.nn.relu(dense(net, 4096, "classifier/3"))
        net = slim.dropout(net, 0.5, is_training=self.is_training, scope="classifier/5")
        return dense(net, self.nclasses, "classifier/6")

    @model_property
    def loss(self):
        accuracy = digits.classification_accuracy(self.inference, self.y)
        self.summaries.append(tf.summary.scalar(accuracy.op.name, accuracy))
        return digits.classification_loss(self.inference, self.y)

// The names that a network file finds, with a word on each; docs/reference/network-contract.md says more.
const digits = {
  classification_loss: "mean softmax cross-entropy",
  classification_accuracy: "share of samples that are right",
  classification_accuracy_top_n: "share with the class among the first n",
  mse_loss: "mean squared difference",
  segmentation_loss: "mean softmax cross-entropy over pixels",
  pixel_accuracy: "share of pixels that are right",
  detection_loss: "loss of a detector",
  boxes_of: "objects of a batch of targets",
  anchor_points: "centers of cells and their strides",
  generalized_iou: "overlap of boxes, from -1 to 1",
  nms: "boxes without those that overlap a better one",
  roi_align: "parts of feature maps",
  contrastive_loss: "loss of pairs",
  constrastive_loss: "another name of contrastive_loss",
  nhwc_to_nchw: "order of axes",
  nchw_to_nhwc: "order of axes",
  hwc_to_chw: "order of axes",
  chw_to_hwc: "order of axes",
  bgr_to_rgb: "order of colors",
  rgb_to_bgr: "order of colors",
  get_available_gpus: "names of GPUs",
  STAGE_TRAIN: "constant",
  STAGE_VAL: "constant",
  STAGE_INF: "constant",
  GraphKeys: "names of collections",
};
const self = {
  x: "the images, (N, H, W, C); rows (N, F); texts (N, L)",
  y: "the labels",
  input_shape: "[H, W, C]; [F]; [L]",
  nclasses: "number of classes",
  target_shape: "shape of one label",
  target_mean: "mean of each value to learn",
  target_std: "standard deviation of each value to learn",
  categories: "of each column of a table; 0 for a number",
  vocabulary_size: "number of tokens",
  inference_inputs: "what inference is given beside x",
  is_training: "True in the training graph",
  is_inference: "True for inference",
  summaries: "list for tf.summary",
  inference: "the output",
  loss: "what is minimized",
  train: "None",
  gradientUpdate: "changes gradients",
  fineTuneHook: "changes the output of a pretrained model",
  disableAutoDataParallelism: "one tower for all devices",
};
const slim =
  "arg_scope avg_pool2d batch_norm bias_add conv2d conv2d_transpose dropout flatten fully_connected l2_regularizer " +
  "layer_norm losses max_pool2d one_hot_encoding repeat separable_conv2d softmax stack";
const nn =
  "avg_pool bias_add conv2d conv2d_transpose dropout elu local_response_normalization max_pool relu sigmoid " +
  "sigmoid_cross_entropy_with_logits softmax sparse_softmax_cross_entropy_with_logits tanh dynamic_rnn";
const layers =
  "average_pooling2d batch_normalization conv2d conv2d_transpose dense dropout flatten max_pooling2d separable_conv2d";
const tf =
  "Variable add add_n argmax cast concat constant div expand_dims get_variable matmul maximum multiply nn layers image " +
  "summary one_hot ones_like placeholder random_normal reduce_mean reduce_sum reshape shape split square to_float " +
  "to_int32 trainable_variables transpose truncated_normal_initializer variable_scope zeros_like contrib";
const words = (text) => Object.fromEntries(text.split(" ").map((word) => [word, ""]));

export const NAMES = {
  "": {
    tf: "TensorFlow as version 1 had it",
    slim: "tf-slim",
    digits: "helpers",
    Tower: "what UserModel inherits",
    model_property: "decorator of inference and loss",
    np: "NumPy",
    UserModel: "the class of the network",
  },
  self,
  digits,
  slim: words(slim),
  tf: words(tf),
  "tf.nn": words(nn),
  "tf.layers": words(layers),
  "tf.summary": words("scalar histogram image merge"),
  "tf.image": words("per_image_standardization random_flip_left_right resize_bilinear resize_image_with_crop_or_pad"),
  "tf.contrib.layers": words("batch_norm conv2d dropout flatten fully_connected l1_regularizer l2_regularizer max_pool2d variance_scaling_initializer xavier_initializer"),
};

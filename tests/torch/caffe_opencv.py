"""Outputs of a network by OpenCV's reader of Caffe: ``caffe_opencv.py NET WEIGHTS IMAGES.npy OUT.npz BLOBS…``."""

import sys

import cv2
import numpy as np

network, weights, images, out, *blobs = sys.argv[1:]
net = cv2.dnn.readNetFromCaffe(network, weights)
results = []
for image in np.load(images):
    net.setInput(image[None])
    results.append([np.asarray(each) for each in net.forward(blobs)])
np.savez(out, *(np.concatenate(each) for each in zip(*results, strict=True)))

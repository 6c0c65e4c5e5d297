"""Serving of exported models over HTTP: ONNX Runtime and Starlette, without a framework and without the studio."""

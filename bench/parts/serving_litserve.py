"""The same model served by LitServe, where that is installed: JSON, batches of at most 64, which wait at most 2 ms."""

import sys

import litserve  # pyright: ignore[reportMissingImports]
import numpy as np
import onnxruntime


class Classifier(litserve.LitAPI):
    """One ONNX model."""

    def setup(self, device: str) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
        self.source = self.session.get_inputs()[0].name

    def decode_request(self, request: dict) -> np.ndarray:
        tensor = request["inputs"][0]
        return np.array(tensor["data"], np.float32).reshape(tensor["shape"])[0]

    def batch(self, inputs: list[np.ndarray]) -> np.ndarray:
        return np.stack(inputs)

    def predict(self, batch: np.ndarray) -> np.ndarray:
        return np.asarray(self.session.run(None, {self.source: batch})[0])

    def unbatch(self, output: np.ndarray) -> list[np.ndarray]:
        return list(output)

    def encode_response(self, output: np.ndarray) -> dict:
        return {"outputs": [{"data": output.tolist()}]}


if __name__ == "__main__":
    server = litserve.LitServer(
        Classifier(max_batch_size=64, batch_timeout=0.002, api_path="/infer"),
        accelerator="cpu",
        devices=1,
        workers_per_device=1,
        healthcheck_path="/v2/health/ready",
    )
    server.run(host="127.0.0.1", port=int(sys.argv[2]), log_level="error", generate_client_file=False)

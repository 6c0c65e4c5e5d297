"""Description of the PyTorch backend; it imports no PyTorch."""

from __future__ import annotations

from typing import Final

from ziggurat.entities.backend_info import BackendInfo, ExportFormat
from ziggurat.zoo import ZOO, networks_in

__all__ = ["INFO"]

_TASKS: Final = "ziggurat.backends.torch.tasks:TorchTasks"

_TEMPLATE: Final = '''"""My network."""


class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        channels, height, width = input_shape
        self.conv1 = nn.Conv2d(channels, 32, 3, padding=1)
        self.fc1 = nn.Linear(32 * (height // 2) * (width // 2), nclasses)

    def forward(self, x):
        x = F.relu(self.conv1(x / 255.0))
        x = F.max_pool2d(x, 2)
        return self.fc1(x.flatten(1))
'''

INFO: Final = BackendInfo(
    title="PyTorch",
    backend="ziggurat.backends.torch.backend:TorchBackend",
    rank=20,
    accelerators=("gpu",),
    networks=networks_in(ZOO / "torch"),
    zoo=ZOO / "torch",
    start_bytes=380_000_000,
    takes_uint8=True,
    trains_on_nodes=True,
    takes_network_files=True,
    network_template=_TEMPLATE,
    file_names=("F", "nn", "torch"),
    capabilities={
        "SupportsInference": _TASKS,
        "SupportsGradients": _TASKS,
        "GivesFeatures": _TASKS,
        "SupportsExport": _TASKS,
        "SupportsDescribe": _TASKS,
        "SupportsGraph": _TASKS,
        "SupportsForeign": _TASKS,
        "SupportsDebug": _TASKS,
    },
    export_formats=(
        ExportFormat("pt2", "PyTorch program (.pt2)", "For PyTorch, without the code of the network."),
        ExportFormat("onnx", "ONNX", "For ONNX Runtime and most other inference engines."),
        ExportFormat(
            "safetensors",
            "Weights (.safetensors)",
            "To go on with in PyTorch programs of your own.",
            holds_preprocessing=False,
        ),
    ),
    weight_suffixes=(".safetensors", ".pt", ".pth"),
    model_suffixes=(".onnx", ".pt", ".pt2"),
    worker_variables=("TORCH_*", "PYTORCH_*", "TRITON_*"),
    requires={"torch": "torch"},
    extra="torch",
)

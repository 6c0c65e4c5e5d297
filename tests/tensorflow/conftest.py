"""TensorFlow's own warnings are not ours; everything else stays an error."""

from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in Path(item.fspath).parents:
            item.add_marker(pytest.mark.tensorflow)
            item.add_marker(pytest.mark.filterwarnings("ignore::UserWarning:tensorflow"))
            item.add_marker(pytest.mark.filterwarnings("ignore::UserWarning:tf_keras"))
            item.add_marker(pytest.mark.filterwarnings("ignore::DeprecationWarning"))

"""Types of the names that ``import ziggurat`` loads when they are used first."""

from ziggurat.interactive import (
    Box as Box,
)
from ziggurat.interactive import (
    ClassScore as ClassScore,
)
from ziggurat.interactive import (
    Connection as Connection,
)
from ziggurat.interactive import (
    Curves as Curves,
)
from ziggurat.interactive import (
    Dataset as Dataset,
)
from ziggurat.interactive import (
    Evaluation as Evaluation,
)
from ziggurat.interactive import (
    ExportedModel as ExportedModel,
)
from ziggurat.interactive import (
    Prediction as Prediction,
)
from ziggurat.interactive import (
    Predictions as Predictions,
)
from ziggurat.interactive import (
    Run as Run,
)
from ziggurat.interactive import (
    Runs as Runs,
)
from ziggurat.interactive import (
    connect as connect,
)
from ziggurat.interactive import (
    dataset as dataset,
)
from ziggurat.interactive import (
    load as load,
)
from ziggurat.interactive import (
    runs as runs,
)
from ziggurat.interactive import (
    train as train,
)

__version__: str

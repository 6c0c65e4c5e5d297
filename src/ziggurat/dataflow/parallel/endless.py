"""tmp."""

from ziggurat.dataflow.base import ProxyDataFlow


class RepeatedData(ProxyDataFlow):
    spans_passes = True

    def __init__(self, ds, num):
        super().__init__(ds)

    def iterate(self):
        while True:
            yield from self.ds

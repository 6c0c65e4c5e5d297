"""Entry point of ``python -m ziggurat``, the same as the command ``ziggurat``."""

import sys

from ziggurat.cli.main import main

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(main())

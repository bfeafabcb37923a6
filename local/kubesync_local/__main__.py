"""``python -m kubesync_local`` is ``kubesync``."""

import sys

from kubesync_local.cli.main import main

if __name__ == "__main__":
    sys.exit(main())

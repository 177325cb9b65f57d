"""Run the command line with `python -m langchain_agentmem.cli`."""

import sys

from langchain_agentmem.cli import main

sys.exit(main())

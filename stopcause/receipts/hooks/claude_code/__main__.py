"""`python -m stopcause.receipts.hooks.claude_code`: what a line of Claude Code's settings runs."""

import sys

from stopcause.receipts.hooks.claude_code import main

sys.exit(main())

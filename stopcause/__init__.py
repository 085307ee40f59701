"""stopcause: why did the agent stop, and is the work there?

This is a front door, opened lazily: `import stopcause` loads nothing, because it happens inside other people's agents.
"""

__version__ = "0.1.0"

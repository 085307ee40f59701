"""What stands for content in these tests: prose, and a word that could pass for an identifier."""

from __future__ import annotations

PROSE, WORD = "canary-7f3a is here", "canary7f3a"
MARKS = (b"canary-7f3a", b"canary7f3a")

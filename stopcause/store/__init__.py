"""The receipt store: records and verdict revisions, append-only. Values in, values out; nothing is judged here."""

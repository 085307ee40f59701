"""What a run leaves behind and how it is captured. Lives inside other people's agents: light, and never raises there.

Here: the record model, its vocabulary, the codec (NDJSON), the journal, the stop conditions.
Not here: what a record means (`stopcause.classifier`) and where it is kept (`stopcause.store`).
"""

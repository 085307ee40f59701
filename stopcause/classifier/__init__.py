"""Records in, verdict out. Pure: no clock, no disk, no network, so the same records give the same verdict anywhere.

`engine` is the door. `rules` holds the eight rules in the order in which they are tried.
"""

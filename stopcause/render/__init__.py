"""Screens, notes and JSON lines from values. Nothing is read, judged or printed here: the command line prints."""

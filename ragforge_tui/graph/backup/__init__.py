"""Backup of a whole graph in one file that either backend can be restored from."""

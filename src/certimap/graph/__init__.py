"""Compilation of a model into read-only arrays: columns, rows, blocks and batches."""

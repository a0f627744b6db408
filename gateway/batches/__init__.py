"""Batches: many operations of one connector as one job, checked before the first is sent, with a result for each."""

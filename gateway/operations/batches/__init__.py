"""Batches: one job for many operations of a connector, checked before the first is sent, with a result for each."""

"""The arq workers: long operations, synchronization and maintenance."""

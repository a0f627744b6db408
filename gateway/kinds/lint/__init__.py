"""The linter: faults of a spec that loading does not find."""

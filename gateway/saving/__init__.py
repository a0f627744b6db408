"""Files onto this machine's disk: begun, broken off, gone on with, checked, and in place only when whole."""

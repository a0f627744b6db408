"""One gateway between software agents and business applications."""

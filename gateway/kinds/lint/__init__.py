"""What is wrong with a spec beyond what loading it finds."""

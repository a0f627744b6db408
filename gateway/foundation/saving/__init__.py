"""Saves files to this machine's disk: resumes and checks them, and puts them in place when they are complete."""

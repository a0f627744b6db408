"""The CRM by query of the sandbox: enough SOQL and SOSL for lists and synchronization, and reports that run."""

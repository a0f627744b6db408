"""Key services, which wrap encryption keys: AWS KMS, Azure Key Vault, Google Cloud KMS, HashiCorp Vault."""

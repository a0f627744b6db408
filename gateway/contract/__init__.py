"""The typed contract: one Struct for each response, used by the handlers, the OpenAPI document and the client."""

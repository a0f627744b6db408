"""Names of actions that mean the same in every kind; loaded by commands, so nothing heavy stands here."""

#: the action that the context store answers, on entities with search fields
SEARCH_ACTION = "context_store_search"

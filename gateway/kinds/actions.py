"""Names of actions that mean the same in every kind; commands import it, so it imports little."""

#: the action that the context store answers, on entities with search fields
SEARCH_ACTION = "context_store_search"

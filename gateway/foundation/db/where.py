"""The WHERE clause of a filtered list."""

#: limits rows to connectors of workspaces; for `Where.add` with their names
OF_WORKSPACES = """
    connector_id IN (
        SELECT connectors.id FROM connectors JOIN workspaces ON workspaces.id = workspace_id
        WHERE workspaces.name = ANY ({}::text[])
    )
"""
#: leaves out rows of connectors that belong to other people; for `Where.require` with the caller's person
NOT_OF_OTHERS = """
    NOT EXISTS (
        SELECT FROM connectors AS personal WHERE personal.id = connector_id
          AND personal.owner_id IS NOT NULL AND personal.owner_id IS DISTINCT FROM {}::uuid
    )
"""
#: leaves out rows that belong to other people; for `Where.require` with the caller's person, null for none
OWNED = "(owner_id IS NULL OR owner_id = {}::uuid)"
#: the same of connectors, by their indexes
OWNED_CONNECTORS = "connectors.owner_key = ANY (ARRAY['00000000-0000-0000-0000-000000000000', {}]::uuid[])"


class Where:
    """A WHERE clause with a condition for each given filter, and its arguments.

    One statement with `$1 IS NULL OR …` for every filter would have a generic plan, which uses no filter's index.
    """

    def __init__(self) -> None:
        self._conditions: list[str] = []
        self.arguments: list[object] = []

    def add(self, condition: str, *values: object) -> None:
        """Add a condition with `{}` for each value, unless a value is None: then the filter is not given."""
        if None not in values:
            self._conditions.append(condition.format(*(self.argument(value) for value in values)))

    def require(self, condition: str, value: object) -> None:
        """Add a condition that holds for None too."""
        self._conditions.append(condition.format(self.argument(value)))

    def argument(self, value: object) -> str:
        """The placeholder of a further argument."""
        self.arguments.append(value)
        return f"${len(self.arguments)}"

    @property
    def text(self) -> str:
        return " AND ".join(self._conditions)

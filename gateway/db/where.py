"""The conditions of a list that is filtered."""

#: rows of connectors of these workspaces; for `Where.add` with the names
OF_WORKSPACES = """
    connector_id IN (
        SELECT connectors.id FROM connectors JOIN workspaces ON workspaces.id = workspace_id
        WHERE workspaces.name = ANY ({}::text[])
    )
"""


class Where:
    """A WHERE clause with a condition for each filter that is given, and its arguments.

    `$1 IS NULL OR …` for every filter would be one statement, whose kept plan uses no filter's index.
    """

    def __init__(self) -> None:
        self._conditions: list[str] = []
        self.arguments: list[object] = []

    def add(self, condition: str, *values: object) -> None:
        """Add a condition with `{}` for each value; nothing where a value is None, which is a filter not given."""
        if None not in values:
            self._conditions.append(condition.format(*(self.argument(value) for value in values)))

    def argument(self, value: object) -> str:
        """The placeholder of a further argument."""
        self.arguments.append(value)
        return f"${len(self.arguments)}"

    @property
    def text(self) -> str:
        return " AND ".join(self._conditions)

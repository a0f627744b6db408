"""A kind for tests of writes and of bulk requests: an application that prints labels."""

from pathlib import Path

KIND = "label-printer"
_CONNECTOR = f"""
kind: {KIND}
title: Label printer
description: Prints labels.
server: https://labels.example.com
hosts: [labels.example.com]
authentication:
  token:
    title: Token
    scheme: bearer
    token: token
    credentials: {{token: {{description: token, required: true, secret: true}}}}
rate_limit: {{requests: 1000, seconds: 1}}
health_check: labels.list
failure:
  when_present: [errors]
  code: [errors.0.extensions.code]
  message: [errors.0.message]
  codes: {{upstream_rate_limited: [RATE_LIMITED]}}
  retry_after: {{RATE_LIMITED: 1}}
"""
_LABELS = """
description: Labels.
actions:
  list:
    request: GET /labels
    effect: read
    description: All labels.
    records: labels
  get:
    request: GET /labels/{name}
    effect: read
    description: A label.
    record: $
    params: {name: {type: string, description: name of the label}}
    required: [name]
    example: {name: a}
    bulk:
      request: GET /labels
      items: {as: names, in: query, explode: false}
      item: "{name}"
      max_items: 10
      records: labels
      match: {name: name}
  create:
    request: POST /labels
    effect: write
    description: Prints a label.
    record: $
    params: {name: {type: string, description: name of the label}}
    required: [name]
    example: {name: a}
    bulk:
      request: POST /labels/many
      items: {as: labels}
      item: {name: "{name}"}
      max_items: 10
      records: printed
      match: {name: name}
      rejects_all: [400]
"""
_CARDS = """
description: Cards.
actions:
  create:
    request: POST /graphql
    effect: write
    description: Prints a card.
    graphql: |
      mutation CardCreate($name: String!) { cardCreate(name: $name) { card { id owner { name } } } }
    record: data.cardCreate
    params: {name: {type: string, description: name of the card}}
    required: [name]
    example: {name: a}
"""
_ROLLS = """
description: Rolls.
actions:
  create:
    request: POST /rolls
    effect: write
    description: Prints a roll.
    record: roll
    runs: job
    long_running:
      start: {id: id}
      status: &status
        {request: "GET /rolls/{run_id}", path: state, running: [running], succeeded: [done], failed: [failed],
         interval: 0.01}
    params: {name: {type: string, description: name of the roll}}
    required: [name]
    example: {name: a}
  create_many:
    request: POST /rolls
    effect: write
    description: Prints rolls.
    record: roll
    runs: job
    long_running:
      start: {id: id}
      status: *status
      results: {items: {path: [results], index: index, error: [error]}}
      split: {param: names, size: 1, message: "{done} of {total} rolls printed"}
    params: {names: {type: array, items: {type: string}, description: names of the rolls}}
    required: [names]
    example: {names: [a]}
"""


def write_label_printer(root: Path) -> Path:
    """The folder of the kind.

    Ten labels can be printed or read by one request, cards are printed by GraphQL, and rolls by long operations.
    """
    folder = root / KIND
    folder.mkdir()
    files = {"connector": _CONNECTOR, "labels": _LABELS, "cards": _CARDS, "rolls": _ROLLS}
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder

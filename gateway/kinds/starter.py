"""The files of a new kind: every member that most kinds need, each with an example value. Pure."""

from collections.abc import Mapping

_CONNECTOR = """\
# {kind}: what all requests have in common. specs/README.md explains the language.
kind: {kind}
application: {title}
title: {title}
description: Read and create items of {title}.
synonyms: [{title}]
server: https://api.{kind}.example.com/v1
hosts: [api.{kind}.example.com]
authentication:
  api_key:
    title: API key
    scheme: bearer
    token: api_key
    credentials:
      api_key: {{description: API key made in the account's settings, required: true, secret: true}}
failure:
  code: [error.code]
  message: [error.message]
paging:
  cursor:
    style: cursor
    param: cursor
    size: limit
    next: next_cursor
    order: stable
    meta: {{next_cursor: paging.next_cursor}}
rate_limit: {{requests: 120, seconds: 60}}
health_check: items.list
"""
_ITEMS = """\
# {kind}/items: one file for each entity; its name is the entity's id.
description: An item with its name and state.
synonyms: [thing]
fields:
  id: string
  name: string
  state: {{enum: [open, closed]}}
  created_at: string
  updated_at: string
actions:
  list:
    request: GET /items
    effect: read
    description: A page of all items, newest first.
    phrases: [list all items, items of a state]
    records: items
    paging: cursor
    params:
      cursor: {{type: string, description: next_cursor of the page before}}
      limit: {{type: integer, minimum: 1, maximum: 100, default: 50, description: items on a page}}
      state: {{type: string, enum: [open, closed], description: only items in this state}}
  get:
    request: GET /items/{{item_id}}
    effect: read
    description: One item by id.
    phrases: [look at one item]
    record: item
    params:
      item_id: {{type: string, description: id of the item}}
    required: [item_id]
    example: {{item_id: item-1}}
  create:
    request: POST /items
    effect: write
    description: Creates an item.
    phrases: [add an item]
    record: item
    find_by: items.list, by the name
    params:
      name: {{type: string, minLength: 1, maxLength: 200, description: what the item is called}}
      state: {{type: string, enum: [open, closed], default: open, description: the state at first}}
    required: [name]
    example: {{name: First item}}
  update:
    request: PATCH /items/{{item_id}}
    effect: idempotent
    description: Changes the given members.
    phrases: [rename an item, close an item]
    record: item
    params:
      item_id: {{type: string, description: id of the item}}
      name: {{type: string, minLength: 1, maxLength: 200, description: the new name}}
      state: {{type: string, enum: [open, closed], description: the new state}}
    required: [item_id]
    constraints: {{minProperties: 2}}
    example: {{item_id: item-1, state: closed}}
search:
  fields: {{id: string, name: string, state: string, created_at: string, updated_at: string}}
  sync:
    request: GET /items
    records: items
    params: {{limit: 100}}
    paging: cursor
    incremental: {{style: modified, param: updated_since}}
"""


def starter_files(kind: str) -> Mapping[str, str]:
    """The text of each file of a new kind, by name; they lint clean and the sandbox plays them."""
    names = {"kind": kind, "title": kind.replace("-", " ").capitalize()}
    return {"connector.yaml": _CONNECTOR.format(**names), "items.yaml": _ITEMS.format(**names)}

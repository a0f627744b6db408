"""How tests have a gateway, each way in one place.

`in_process` is the front end in the tests' own process, `up` is `gateway up` as one command, `deployment` is front ends
and workers as processes of their own. `processes` starts, freezes and ends all of them, `clients` makes who may call,
`caller` calls, `waiting` waits, `databases` and `applications` are what lies behind and beyond.
"""

"""Starts, calls and stops gateways for tests.

`in_process`: a front end in the test process. `up`: `gateway up` as one command. `deployment`: front ends and workers
as separate processes. `processes` starts, freezes and ends them, `clients` creates clients, `caller` sends requests,
`waiting` waits for conditions, `databases` creates databases, and `applications` fakes applications.
"""

"""Admission control: requests that a front end refuses before it does anything for them.

`token_buckets` limits the rate of clients and organizations, `fair_slots` the number of requests in progress of each
holder, and `gradient` the number of all of them by the load of the process. `load_shedding` applies the latter.
"""

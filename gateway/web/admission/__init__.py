"""Admission control: a front end refuses excess requests before it does any work for them.

`token_buckets` limits the rate of clients and organizations, `gradient` the number of requests in progress by the load
of the process. `load_shedding` applies the latter, and limits the requests in progress of each holder.
"""

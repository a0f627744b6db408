"""A stand-in for S3."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from gateway.jobs.stored_files.blobs import Blobs


@contextmanager
def bucket_served() -> Iterator[dict[str, str]]:
    """How to reach an S3-compatible server with a bucket in it; skips the test if it is not installed."""
    moto = pytest.importorskip("moto.server", reason="moto, a stand-in for S3, is not installed")
    pytest.importorskip("obstore", reason="the extra s3 is not installed")
    boto3 = pytest.importorskip("boto3")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    keys = {"aws_access_key_id": "key", "aws_secret_access_key": "secret"}
    client = boto3.client("s3", endpoint_url=f"http://{host}:{port}", region_name="us-east-1", **keys)
    client.create_bucket(Bucket="bucket")
    client.close()
    yield {"aws_endpoint": f"http://{host}:{port}", "aws_region": "us-east-1", **keys}
    server.stop()


def bucket_blobs(config: Any, prefix: str) -> Blobs:
    """The blobs below a prefix of the bucket."""
    from gateway.jobs.stored_files.bucket import BucketBlobs

    return BucketBlobs(f"s3://bucket/{prefix}", config=config, client_options={"allow_http": True})

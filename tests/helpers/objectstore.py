"""A local server with the interface of S3 (moto), in a process of its own."""

import importlib.util
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.error import HTTPError, URLError

from ports import free_port
from waiting import wait_for

BUCKET = "bucket"
MISSING = [name for name in ("moto", "flask_cors", "boto3") if importlib.util.find_spec(name) is None]


@contextmanager
def server() -> Iterator[dict[str, str]]:
    """Yield the environment of those who use the server, which has one empty bucket."""
    port = free_port()
    line = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"

    def made() -> bool:
        assert process.poll() is None, "the server ended"
        try:
            return put(f"{address}/{BUCKET}") == 200
        except (URLError, ConnectionError):
            return False

    try:
        wait_for(made)
        yield {
            "AWS_ENDPOINT_URL": address,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "NO_PROXY": ",".join(filter(None, [os.environ.get("NO_PROXY"), "127.0.0.1"])),
        }
    finally:
        process.kill()
        process.wait()


def put(url: str, content: bytes = b"") -> int:
    """Put an object, or make a bucket, as an anonymous user of a server that checks nothing."""
    request = urllib.request.Request(url, data=content, method="PUT")  # noqa: S310
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer:
            return answer.status
    except HTTPError as fault:
        return fault.code

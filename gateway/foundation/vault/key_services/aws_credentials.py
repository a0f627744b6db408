"""Credentials for AWS: from variables, a web identity (EKS), a container (ECS, EKS) or the machine (EC2)."""

import re
from collections.abc import Mapping
from typing import Any
from xml.sax.saxutils import unescape

from gateway.foundation.vault.key_services.aws_signature import AwsCredentials
from gateway.foundation.vault.key_services.service import (
    Http,
    KeyServiceAway,
    KeyServiceRefused,
    file_content,
    member,
)

_MACHINE = "http://169.254.169.254"
_CONTAINER = "http://169.254.170.2"
#: members of the credentials in XML and JSON
_MEMBERS = ("AccessKeyId", "SecretAccessKey", "SessionToken")
#: seconds for which a token of the machine's metadata is requested
_METADATA_SECONDS = "60"


async def aws_credentials(http: Http, region: str, environ: Mapping[str, str]) -> AwsCredentials:
    """The credentials of the first source that the variables name, else the machine's; raises KeyServiceError."""
    if environ.get("AWS_ACCESS_KEY_ID") and environ.get("AWS_SECRET_ACCESS_KEY"):
        names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
        return AwsCredentials(*(environ.get(name, "") for name in names))
    if environ.get("AWS_WEB_IDENTITY_TOKEN_FILE") and environ.get("AWS_ROLE_ARN"):
        return await _of_web_identity(http, region, environ)
    if environ.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") or environ.get("AWS_CONTAINER_CREDENTIALS_FULL_URI"):
        return await _of_container(http, environ)
    if environ.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
        raise KeyServiceRefused("there are no credentials for AWS: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
    try:
        return await _of_machine(http, environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT") or _MACHINE)
    except KeyServiceAway as error:
        raise KeyServiceAway(f"{error}; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY if it is not on EC2") from None


async def _of_web_identity(http: Http, region: str, environ: Mapping[str, str]) -> AwsCredentials:
    """https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRoleWithWebIdentity.html"""
    url = environ.get("AWS_ENDPOINT_URL_STS") or environ.get("AWS_ENDPOINT_URL") or f"https://{aws_host('sts', region)}"
    form = {
        "Action": "AssumeRoleWithWebIdentity",
        "Version": "2011-06-15",
        "RoleArn": environ["AWS_ROLE_ARN"],
        "RoleSessionName": environ.get("AWS_ROLE_SESSION_NAME") or "agent-connector-gateway",
        "WebIdentityToken": file_content(environ["AWS_WEB_IDENTITY_TOKEN_FILE"]),
    }
    answer = (await http.content("POST", f"{url.rstrip('/')}/", data=form)).decode("utf-8", "replace")
    found = {name: re.search(rf"<{name}>([^<]+)</{name}>", answer) for name in _MEMBERS}
    return _read({name: unescape(match[1]).strip() for name, match in found.items() if match}, _MEMBERS)


async def _of_container(http: Http, environ: Mapping[str, str]) -> AwsCredentials:
    """https://docs.aws.amazon.com/sdkref/latest/guide/feature-container-credentials.html"""
    relative = environ.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
    url = f"{_CONTAINER}{relative}" if relative else environ["AWS_CONTAINER_CREDENTIALS_FULL_URI"]
    token = environ.get("AWS_CONTAINER_AUTHORIZATION_TOKEN", "")
    if path := environ.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"):
        token = file_content(path)
    document = await http.json("GET", url, headers={"Authorization": token} if token else {})
    return _read(document, ("AccessKeyId", "SecretAccessKey", "Token"))


async def _of_machine(http: Http, base: str) -> AwsCredentials:
    """https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/configuring-instance-metadata-service.html"""
    base = f"{base.rstrip('/')}/latest"
    requested = {"X-aws-ec2-metadata-token-ttl-seconds": _METADATA_SECONDS}
    token = (await http.content("PUT", f"{base}/api/token", headers=requested)).decode("ascii", "replace")
    headers, path = {"X-aws-ec2-metadata-token": token}, f"{base}/meta-data/iam/security-credentials/"
    role = (await http.content("GET", path, headers=headers)).decode("utf-8", "replace").split("\n")[0].strip()
    return _read(await http.json("GET", f"{path}{role}", headers=headers), ("AccessKeyId", "SecretAccessKey", "Token"))


def _read(document: Mapping[str, Any], names: tuple[str, str, str]) -> AwsCredentials:
    return AwsCredentials(*(member(document, name) for name in names))


def aws_host(service: str, region: str) -> str:
    """The host of a service in a region: China has a domain of its own."""
    return f"{service}.{region}.amazonaws.com{'.cn' if region.startswith('cn-') else ''}"

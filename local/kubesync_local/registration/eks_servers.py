"""Which addresses belong to EKS. ``--eks`` signs in with AWS's own identity: what receives that token must be an EKS API server."""

import re
from typing import Final
from urllib.parse import urlsplit

# https://docs.aws.amazon.com/eks/latest/userguide/cluster-endpoint.html: IPv4 clusters, dual-stack ones, and both in China; the regions
# of GovCloud have the same forms, and there is no FIPS form of a cluster's endpoint. In China IPv4 endpoints also end in
# eks.amazonaws.com.cn. `api.aws` belongs to all of AWS, so that only names below `eks-cluster` count there. AWS's isolated regions
# have other domains: there DescribeCluster decides.
_REGION: Final = r"[a-z]{2}(-[a-z]+)+-\d"
_FORMS: Final = (
    rf"[a-z0-9]+(\.[a-z0-9]+)?\.{_REGION}\.eks\.amazonaws\.com(\.cn)?",
    r"[a-z0-9]+(\.[a-z0-9]+)?\.cn-[a-z]+-\d\.amazonwebservices\.com\.cn",
    rf"([a-z0-9]+\.){{1,2}}eks-cluster\.{_REGION}\.api\.(aws|amazonwebservices\.com\.cn)",
)
_ENDPOINT: Final = re.compile("|".join(_FORMS))


def is_eks_server(server: str) -> bool:
    """Whether a server's address has the form of an EKS cluster's endpoint."""
    parts = urlsplit(server)
    return parts.scheme == "https" and _ENDPOINT.fullmatch((parts.hostname or "").rstrip(".")) is not None


def region_of(eks: str, server: str) -> str:
    """The region of an EKS cluster, by its ARN or its server's address; empty if neither says it."""
    found = re.search(_REGION, eks if eks.startswith("arn:") else server if is_eks_server(server) else "")
    return found[0] if found else ""


def same_host(server: str, other: str) -> bool:
    """Whether two addresses name one host."""
    return (urlsplit(server).hostname or "").rstrip(".") == (urlsplit(other).hostname or "").rstrip(".") != ""

"""Addresses that may receive a token of AWS's identity."""

import pytest

from kubesync_local.registration.eks_servers import is_eks_server, region_of


@pytest.mark.parametrize(
    "server",
    [
        "https://0123456789ABCDEF0123456789ABCDEF.gr7.eu-west-1.eks.amazonaws.com",
        "https://0123456789ABCDEF0123456789ABCDEF.yl4.us-gov-west-1.eks.amazonaws.com:443/",
        "https://0123456789ABCDEF0123456789ABCDEF.ap-southeast-2.eks.amazonaws.com",
        "https://0123456789ABCDEF0123456789ABCDEF.sk1.cn-northwest-1.eks.amazonaws.com.cn",
        "https://0123456789ABCDEF0123456789ABCDEF.cn-north-1.amazonwebservices.com.cn",
        "https://0123456789ABCDEF0123456789ABCDEF.gr7.eks-cluster.eu-west-1.api.aws",
        "https://0123456789ABCDEF0123456789ABCDEF.eks-cluster.cn-north-1.api.amazonwebservices.com.cn",
    ],
)
def test_endpoint_of_eks_is_one(server: str) -> None:
    assert is_eks_server(server)


@pytest.mark.parametrize(
    "server",
    [
        "https://evil.example",
        "https://127.0.0.1:6443",
        "http://abc.gr7.eu-west-1.eks.amazonaws.com",
        "https://abc.gr7.eu-west-1.eks.amazonaws.com.evil.example",
        "https://abc.gr7.eu-west-1.eks.amazonaws.com@evil.example",
        "https://abc.gr7.eu-west-1.eks.amazonaws.comx",
        "https://evil-eks.amazonaws.com",
        "https://eks.eu-west-1.amazonaws.com",
        "https://abc.execute-api.eu-west-1.amazonaws.com",
        "https://abc.execute-api.eu-west-1.api.aws",
        "https://abc.eu-west-1.elb.amazonaws.com",
        "https://eks-cluster.eu-west-1.api.aws",
        "https://abc.eu-west-1.elb.cn-north-1.amazonwebservices.com.cn",
        "",
    ],
)
def test_other_address_is_none(server: str) -> None:
    assert not is_eks_server(server)


@pytest.mark.parametrize(
    ("eks", "server", "region"),
    [
        ("arn:aws:eks:eu-west-1:123456789012:cluster/us-east-1", "", "eu-west-1"),
        ("prod", "https://ABCDEF0123456789.gr7.ap-southeast-2.eks.amazonaws.com", "ap-southeast-2"),
        ("prod-us-east-1", "https://10.0.0.1:6443", ""),
        ("", "https://api.eu-west-1.example.com", ""),
        ("prod", "", ""),
    ],
)
def test_region_is_known_of_eks_only(eks: str, server: str, region: str) -> None:
    assert region_of(eks, server) == region

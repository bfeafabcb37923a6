"""``make demo``, as a person runs it: a process of its own."""

import re

from harness.cli_stack import a_cli_stack


def test_demo_ends_as_its_story_must() -> None:
    with a_cli_stack(in_memory=True) as stack:
        ran = stack.run("demo", "--fast", AWS_PROFILE="no-such-profile-of-the-person")

    assert ran.status == 0, ran.out + ran.err
    assert "✓ 29 record sets and 13 upstreams are exactly as expected" in ran.out
    before, _, story = ran.out.partition("deploy test-hello")
    assert (
        "  + store.example.com CNAME k8s-shop-store-1.eu-west-1.elb.amazonaws.com. ttl 30  (demo/shop/Ingress:store appeared)"
        in before
    )
    assert "4 to add, 0 to change, 0 to delete, 0 held back" in before  # three record sets and an upstream
    assert "+ store.example.com CNAME" in story
    assert re.search(r"hand-over: watching again \d\.\d\d s after the lease was released", ran.out)
    assert ran.err == ""

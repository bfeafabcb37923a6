"""What is said of an Ingress: ``domain.sources.ingresses``. Its rules are rows of ``tests/dns/cases.md``."""

from harness.dns_cases.notation import PREFIX, key_of, rules_for
from kubesync.domain.sources.ingresses import Ingress, desired

WEB = key_of("Ingress:web")


def test_what_is_said_speaks_of_the_ingress() -> None:
    annotations = ((f"{PREFIX}controller", "other"), ("kubesync.io/exclude", "maybe"))
    asked = Ingress(hosts=("www.example.com",), ingress_ips=("192.0.2.1",), annotations=annotations)
    said = {problem.code: problem.message for problem in desired(WEB, asked, rules_for("prod", {})).problems}
    assert said == {
        "InvalidExclude": 'must be "true" or "false"; the Ingress is not left out',
        "OtherController": (
            "neither dns-controller nor kubesync: names that the Ingress holds stay published, other names are not published"
        ),
    }

"""Cases of changes to a zone under each policy, and of registration."""

from __future__ import annotations

from typing import Final

from harness.dns_cases.table import ChangeCase, RegistrationCase, Rule
from kubesync.domain.plan import Policy

CHANGES: Final = Rule(
    "Changes and policies",
    "A change deletes the known record set and creates the wanted one, in one batch. `sync` deletes everything "
    "that is no longer wanted. `upsert-only` deletes only a set that cannot exist beside the wanted one. "
    "`create-only` only adds.",
    [
        ChangeCase("a new set", [], ["a.example.com A 30 10.0.0.1"], ["+ a.example.com A 30 10.0.0.1"]),
        ChangeCase(
            "a new value",
            ["a.example.com A 30 10.0.0.1"],
            ["a.example.com A 30 10.0.0.2"],
            ["- a.example.com A 30 10.0.0.1 / + a.example.com A 30 10.0.0.2"],
        ),
        ChangeCase(
            "a new TTL",
            ["a.example.com A 30 10.0.0.1"],
            ["a.example.com A 60 10.0.0.1"],
            ["- a.example.com A 30 10.0.0.1 / + a.example.com A 60 10.0.0.1"],
        ),
        ChangeCase("nothing new", ["a.example.com A 30 10.0.0.1"], ["a.example.com A 30 10.0.0.1"], []),
        ChangeCase("no longer wanted", ["a.example.com A 30 10.0.0.1"], [], ["- a.example.com A 30 10.0.0.1"]),
        ChangeCase(
            "CNAME to A and AAAA: one batch",
            ["a.example.com CNAME 30 lb.example.net."],
            ["a.example.com A 30 10.0.0.1", "a.example.com AAAA 30 fd00::1"],
            [
                (
                    "+ a.example.com A 30 10.0.0.1 / + a.example.com AAAA 30 fd00::1 / "
                    "- a.example.com CNAME 30 lb.example.net."
                )
            ],
        ),
        ChangeCase(
            "A and AAAA to CNAME: one batch",
            ["a.example.com A 30 10.0.0.1", "a.example.com AAAA 30 fd00::1"],
            ["a.example.com CNAME 30 lb.example.net."],
            [
                (
                    "- a.example.com A 30 10.0.0.1 / - a.example.com AAAA 30 fd00::1 / "
                    "+ a.example.com CNAME 30 lb.example.net."
                )
            ],
        ),
        ChangeCase(
            "an alias in place of a CNAME: one batch",
            ["a.example.com CNAME 30 lb.elb.amazonaws.com."],
            ["a.example.com A alias ZLB lb.elb.amazonaws.com"],
            ["+ a.example.com A alias ZLB lb.elb.amazonaws.com / - a.example.com CNAME 30 lb.elb.amazonaws.com."],
        ),
        ChangeCase(
            "addresses in place of an alias",
            ["a.example.com A alias ZLB lb.elb.amazonaws.com"],
            ["a.example.com A 30 10.0.0.1"],
            ["- a.example.com A alias ZLB lb.elb.amazonaws.com / + a.example.com A 30 10.0.0.1"],
        ),
        ChangeCase(
            "a weighted alias in place of a weighted CNAME: one batch",
            ["a.example.com CNAME [blue 1] 30 lb.elb.amazonaws.com."],
            ["a.example.com A [blue 1] alias ZLB lb.elb.amazonaws.com"],
            [
                (
                    "+ a.example.com A [blue 1] alias ZLB lb.elb.amazonaws.com / "
                    "- a.example.com CNAME [blue 1] 30 lb.elb.amazonaws.com."
                )
            ],
        ),
        ChangeCase(
            "another weight of an alias",
            ["a.example.com A [blue 1] alias ZLB lb.elb.amazonaws.com"],
            ["a.example.com A [blue 9] alias ZLB lb.elb.amazonaws.com"],
            [
                (
                    "- a.example.com A [blue 1] alias ZLB lb.elb.amazonaws.com / "
                    "+ a.example.com A [blue 9] alias ZLB lb.elb.amazonaws.com"
                )
            ],
        ),
        ChangeCase(
            "A and AAAA change separately",
            ["a.example.com A 30 10.0.0.1", "a.example.com AAAA 30 fd00::1"],
            ["a.example.com A 30 10.0.0.2", "a.example.com AAAA 30 fd00::2"],
            [
                "- a.example.com A 30 10.0.0.1 / + a.example.com A 30 10.0.0.2",
                "- a.example.com AAAA 30 fd00::1 / + a.example.com AAAA 30 fd00::2",
            ],
        ),
        ChangeCase(
            "a simple set becomes a weighted one: one batch",
            ["a.example.com A 30 10.0.0.1"],
            ["a.example.com A [blue 1] 30 10.0.0.1"],
            ["- a.example.com A 30 10.0.0.1 / + a.example.com A [blue 1] 30 10.0.0.1"],
        ),
        ChangeCase(
            "another weight",
            ["a.example.com A [blue 1] 30 10.0.0.1"],
            ["a.example.com A [blue 2] 30 10.0.0.1"],
            ["- a.example.com A [blue 1] 30 10.0.0.1 / + a.example.com A [blue 2] 30 10.0.0.1"],
        ),
        ChangeCase(
            "another identifier: one batch",
            ["a.example.com A [blue 1] 30 10.0.0.1"],
            ["a.example.com A [green 1] 30 10.0.0.1"],
            ["- a.example.com A [blue 1] 30 10.0.0.1 / + a.example.com A [green 1] 30 10.0.0.1"],
        ),
        ChangeCase(
            "upsert-only: a new value",
            ["a.example.com A 30 10.0.0.1"],
            ["a.example.com A 30 10.0.0.2"],
            ["- a.example.com A 30 10.0.0.1 / + a.example.com A 30 10.0.0.2"],
            Policy.UPSERT_ONLY,
        ),
        ChangeCase("upsert-only: no longer wanted", ["a.example.com A 30 10.0.0.1"], [], [], Policy.UPSERT_ONLY),
        ChangeCase(
            "upsert-only: a CNAME makes way for addresses",
            ["a.example.com CNAME 30 lb.example.net."],
            ["a.example.com A 30 10.0.0.1"],
            ["+ a.example.com A 30 10.0.0.1 / - a.example.com CNAME 30 lb.example.net."],
            Policy.UPSERT_ONLY,
        ),
        ChangeCase(
            "upsert-only: a simple set makes way for a weighted one",
            ["a.example.com A 30 10.0.0.1"],
            ["a.example.com A [blue 1] 30 10.0.0.1"],
            ["- a.example.com A 30 10.0.0.1 / + a.example.com A [blue 1] 30 10.0.0.1"],
            Policy.UPSERT_ONLY,
        ),
        ChangeCase(
            "upsert-only: another identifier, both fit",
            ["a.example.com A [blue 1] 30 10.0.0.1"],
            ["a.example.com A [green 1] 30 10.0.0.1"],
            ["+ a.example.com A [green 1] 30 10.0.0.1"],
            Policy.UPSERT_ONLY,
        ),
        ChangeCase(
            "create-only: a new set",
            [],
            ["a.example.com A 30 10.0.0.1"],
            ["+ a.example.com A 30 10.0.0.1"],
            Policy.CREATE_ONLY,
        ),
        ChangeCase(
            "create-only: a new value",
            ["a.example.com A 30 10.0.0.1"],
            ["a.example.com A 30 10.0.0.2"],
            [],
            Policy.CREATE_ONLY,
        ),
        ChangeCase(
            "create-only: a CNAME does not make way",
            ["a.example.com CNAME 30 lb.example.net."],
            ["a.example.com A 30 10.0.0.1"],
            [],
            Policy.CREATE_ONLY,
        ),
        ChangeCase("create-only: no longer wanted", ["a.example.com A 30 10.0.0.1"], [], [], Policy.CREATE_ONLY),
    ],
)

REGISTRATION: Final = Rule(
    "What registration refuses",
    "`kubesync cluster add` refuses a configuration that cannot work, with one line and exit status 2. Besides "
    "the cases below, it refuses a hosted zone that does not exist or cannot be read (with its role, if it has "
    "one), and a cluster that is already registered. The Services' own names must differ between clusters. To "
    "share a name between clusters, use annotations.",
    [
        RegistrationCase("a cluster like any other", {}),
        RegistrationCase(
            "a domain outside its zones",
            {"domain": "k8s.example.org"},
            "none of the given zones contains k8s.example.org (Z1 is example.com)",
        ),
        RegistrationCase(
            "a domain that only ends like the zone",
            {"domain": "k8s.evilexample.com"},
            "none of the given zones contains k8s.evilexample.com (Z1 is example.com)",
        ),
        RegistrationCase("a zone below the domain", {"zones": ("Z3 svc.k8s.example.com",)}),
        RegistrationCase(
            "a zone below the domain that the template does not use",
            {"zones": ("Z3 pods.k8s.example.com",)},
            "none of the given zones contains k8s.example.com (Z3 is pods.k8s.example.com)",
        ),
        RegistrationCase(
            "not a domain",
            {"domain": "k8s..example.com"},
            "domain: 'k8s..example.com' is not valid: labels of lower-case letters, digits, hyphens and underscores, with single "
            "dots between them",
        ),
        RegistrationCase(
            "a template without the namespace",
            {"template": "{service}.{domain}"},
            "template '{service}.{domain}' lacks {namespace}: Services would share one name",
        ),
        RegistrationCase(
            "a template without the namespace, with one namespace",
            {"template": "{service}.{domain}", "namespace": "shop"},
        ),
        RegistrationCase(
            "a template without the Service",
            {"template": "{namespace}.{domain}"},
            "template '{namespace}.{domain}' lacks {service}: Services would share one name",
        ),
        RegistrationCase(
            "a template that joins Service and namespace",
            {"template": "{service}-{namespace}.{domain}"},
            "template '{service}-{namespace}.{domain}' joins {service} and {namespace} without a dot between them: Services "
            "would share one name",
        ),
        RegistrationCase(
            "a template that joins them in a unique way",
            {"template": "{service}-{namespace}.{namespace}.{domain}"},
        ),
        RegistrationCase(
            "a template with an unknown field",
            {"template": "{pod}.{domain}"},
            "the template may hold {service}, {namespace}, {domain} and {cluster} only: {pod} at character 1 of '{pod}.{domain}' "
            "is not one of them",
        ),
        RegistrationCase(
            "a template that makes no valid name",
            {"template": "{service}..{namespace}.{domain}"},
            "template '{service}..{namespace}.{domain}' makes 's..n.k8s.example.com', which is not a name below k8s.example.com",
        ),
        RegistrationCase(
            "a template outside the domain",
            {"template": "{service}.{namespace}.{domain}.net"},
            "template '{service}.{namespace}.{domain}.net' makes 's.n.k8s.example.com.net', which is not a name below k8s.example.com",
        ),
        RegistrationCase(
            "the same names as another cluster",
            {},
            "Services of cluster other can have the same names (a.a.svc.k8s.example.com): give another --domain or --template",
            [{}],
        ),
        RegistrationCase(
            "names that overlap with those of another template",
            {"template": "{service}-eu.{namespace}.svc.{domain}"},
            "Services of cluster other can have the same names (a-eu.a.svc.k8s.example.com): give another --domain or --template",
            [{}],
        ),
        RegistrationCase("no own names (`none`)", {"template": "none"}, "", [{}, {"template": "none"}]),
        RegistrationCase(
            "no own names (`none`), and a domain outside all zones",
            {"template": "none", "domain": "k8s.example.net"},
            "none of the given zones contains k8s.example.net (Z1 is example.com)",
        ),
        RegistrationCase(
            "names that overlap with those of another domain",
            {"template": "{service}.{namespace}.{domain}", "domain": "svc.k8s.example.com"},
            "Services of cluster other can have the same names (a.a.svc.k8s.example.com): give another --domain or --template",
            [{}],
        ),
        RegistrationCase("another domain", {}, "", [{"domain": "dev.example.com"}]),
        RegistrationCase(
            "the cluster's name in the template", {"template": "{service}.{namespace}.{cluster}.{domain}"}, "", [{}]
        ),
        RegistrationCase("the same names in another zone", {}, "", [{"zones": ("Z2 example.com",)}]),
        RegistrationCase("other namespaces of one domain", {"namespace": "shop"}, "", [{"namespace": "docs"}]),
        RegistrationCase(
            "one namespace; another cluster has all namespaces",
            {"namespace": "shop"},
            "Services of cluster other can have the same names (a.shop.svc.k8s.example.com): give another --domain or --template",
            [{}],
        ),
    ],
)

"""One example of each command, shown at the end of its help. Tests parse every one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

EXAMPLES: Final[Mapping[str, str]] = {
    "demo": "kubesync demo --fast",
    "setup": "kubesync setup",
    "local up": "kubesync local up --story 5 > /tmp/kubesync.env",
    "local env": 'eval "$(kubesync local env)"',
    "local down": "kubesync local down",
    "session": "kubesync session --max-runtime 60",
    "run": "kubesync run --listen 0.0.0.0:9090",
    "plan": "kubesync plan --cluster prod",
    "resync": "kubesync resync --cluster prod --dry-run --output table",
    "recover": "kubesync recover --cluster prod --name '*.shop.example.com'",
    "pause": "kubesync pause --deployment main",
    "resume": "kubesync resume --deployment main",
    "render": "kubesync render nginx --cluster prod",
    "status": "kubesync status --cluster prod --check",
    "records": "kubesync records --name '*.shop.*' --type A --sort name",
    "upstreams": "kubesync upstreams --service shop/web -o yaml",
    "explain": "kubesync explain prod/shop/web",
    "errors": "kubesync errors --cluster prod --limit 20",
    "audit": "kubesync audit --service prod/shop/web --since 2h",
    "doctor": "kubesync doctor --deployment main",
    "wait": "kubesync wait prod/shop/web --timeout 120",
    "lint": "kubesync lint -f service.yaml --cluster prod",
    "ui": "kubesync ui",
    "cluster add": "kubesync cluster add prod --eks prod --domain prod.example.com --zone Z0123456789ABCDEFGHIJ",
    "cluster set": "kubesync cluster set prod --ttl 60",
    "cluster apply": "kubesync cluster apply -f clusters.yaml",
    "cluster export": "kubesync cluster export prod > prod.yaml",
    "cluster list": "kubesync cluster list --sort domain",
    "cluster show": "kubesync cluster show prod -o yaml",
    "cluster check": "kubesync cluster check prod",
    "cluster remove": "kubesync cluster remove prod --retain",
    "cluster disable": "kubesync cluster disable prod",
    "cluster enable": "kubesync cluster enable prod",
    "upstream add": "kubesync upstream add web --service prod/shop/web/80,weight=3 --static 10.0.0.1:80,backup",
    "upstream list": "kubesync upstream list -o json",
    "upstream show": "kubesync upstream show web",
    "upstream remove": "kubesync upstream remove web",
    "upstream hold": "kubesync upstream hold web --by edge-proxies",
    "upstream release": "kubesync upstream release web --by edge-proxies",
    "help": "kubesync help cluster add",
    "completion": 'eval "$(kubesync completion bash)"',
}
"""By the words of the command, without ``kubesync``. A row may be there before its command."""

"""``kubesync cluster export``: registered clusters as YAML that ``cluster apply`` reads."""

import argparse
import sys

import yaml

from kubesync_local.commands.cluster.changes import registered
from kubesync_local.commands.cluster.clusters_file import API_VERSION
from kubesync_local.commands.cluster.options import options_of, without_external_ids
from kubesync_local.terminal.output import remark
from kubesync_local.workplace.workplace import Workplace


class _Dumper(yaml.SafeDumper):
    """Texts of several lines, which are certificates, stay readable."""


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def run(arguments: argparse.Namespace) -> int:
    """Print one cluster or all of this shard; those that are being removed are left out."""
    work = Workplace()
    rows = []
    for config in work.chosen(arguments.name):
        if config.deleting or config.shard != work.settings.shard:
            why = "is being removed" if config.deleting else f"belongs to shard {config.shard}"
            remark(f"note: cluster {config.name} {why}: it is left out")
            continue
        form = registered(config, work)
        rows.append({"name": config.name, **without_external_ids(options_of(config, form.access))})
    sys.stdout.write(
        yaml.dump(
            {"apiVersion": API_VERSION, "clusters": rows},
            Dumper=_Dumper,
            sort_keys=False,
            allow_unicode=False,
            width=100_000,
        )
    )
    return 0

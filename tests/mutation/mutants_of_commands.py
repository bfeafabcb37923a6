"""Mechanisms by which commands refuse wrong use in words, and not as a fault of kubesync."""

from typing import Final

from mutation.mutant import Mutant

_WRONG: Final = "integration/cli/test_wrong_use.py::"
_FILE: Final = "integration/cli_plans/test_cluster_apply.py::"
_SET: Final = "integration/cli_plans/test_cluster_set.py::"

OF_COMMANDS: Final[tuple[Mutant, ...]] = (
    Mutant(
        name="shard-is-any-text",
        without="`cluster add --shard` with a text that is no shard ends as a fault of kubesync",
        invariants="",
        file="kubesync_local/cli/cluster_options.py",
        old="        type=shard_id,\n",
        new="",
        caught_by=(_WRONG + "test_cluster_that_cannot_be_is_refused",),
    ),
    Mutant(
        name="unusable-zones-are-none",
        without="a file of clusters with zones in another form ends as a fault of kubesync",
        invariants="",
        file="kubesync_local/commands/cluster/form.py",
        old='    config = ClusterConfig.model_validate({**fields, "zones": zones or shown})\n',
        new='    config = ClusterConfig.model_validate({**fields, "zones": zones})\n',
        caught_by=(_FILE + "test_wrong_file_changes_nothing_and_every_problem_is_a_line",),
    ),
    Mutant(
        name="mistakes-are-said-twice",
        without="a mistake that two checks of one cluster find is two problems",
        invariants="",
        file="kubesync_local/registration/mistakes.py",
        old="list(dict.fromkeys(self.found))",
        new="self.found",
        caught_by=(_FILE + "test_wrong_file_changes_nothing_and_every_problem_is_a_line",),
    ),
    Mutant(
        name="unknown-deletions-need-no-word",
        without="`cluster set --selector` in a pipe deletes record sets that its plan does not know of, with no confirmation",
        invariants="",
        file="kubesync_local/commands/cluster/changes.py",
        old="    elif not yes and plan.may_delete:\n",
        new="    elif False:\n",
        caught_by=(
            _SET + "test_change_that_may_delete_more_than_is_known_is_confirmed",
            _SET + "test_file_that_may_delete_more_than_is_known_is_confirmed",
        ),
    ),
    Mutant(
        name="confirmed-number-covers-unknown-deletions",
        without="`--allow-deletions` confirms deletions that its plan does not know of",
        invariants="",
        file="kubesync_local/commands/cluster/changes.py",
        old="    elif not yes and plan.may_delete:\n",
        new="    elif not yes and allowed is None and plan.may_delete:\n",
        caught_by=(_SET + "test_change_that_may_delete_more_than_is_known_is_confirmed",),
    ),
    Mutant(
        name="files-forget-unknown-deletions",
        without="a file of clusters needs no confirmation for deletions that no plan knows of",
        invariants="",
        file="kubesync_local/plans/plan.py",
        old="            self.may_delete or other.may_delete,\n",
        new="            self.may_delete,\n",
        caught_by=(_SET + "test_file_that_may_delete_more_than_is_known_is_confirmed",),
    ),
)

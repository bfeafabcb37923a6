"""deploy/terraform is the template in Terraform's language."""

import re

import pytest

from harness.wire.template import read_template
from terraform_module import FOLDER, Module, files


@pytest.mark.parametrize("name", ["main.tf", "outputs.tf", "variables.tf"])
def test_module_is_as_the_template_is(name: str) -> None:
    assert (FOLDER / name).read_text() == files(read_template())[name], "make terraform"


def test_module_has_a_resource_for_each_of_the_template() -> None:
    text = (FOLDER / "main.tf").read_text()
    beside = ("aws_lambda_function_event_invoke_config", "aws_iam_role_policy", "aws_iam_role_policy_attachment")
    made = [kind for kind in re.findall(r'^resource "(\w+)"', text, re.MULTILINE) if kind not in beside]

    assert len(made) == len(read_template()["Resources"])
    assert text.count("prevent_destroy = true") == 4
    assert len(re.findall(r'^resource "aws_iam_role_policy_attachment"', text, re.MULTILINE)) == 14
    assert text.count('"_kubesync-${var.deployment_id}-*,${var.record_names}"') == 2


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"Fn::Sub": "kubesync-${DeploymentId}-watch"}, '"kubesync-${var.deployment_id}-watch"'),
        ({"Fn::GetAtt": "StateTable.Arn"}, "aws_dynamodb_table.state_table.arn"),
        ({"Fn::GetAtt": "WatchLogGroup.Arn"}, '"${aws_cloudwatch_log_group.watch_log_group.arn}:*"'),
        ({"Ref": "DependenciesLayer"}, "one(aws_lambda_layer_version.dependencies_layer[*].arn)"),
        ({"Fn::If": ["HasVpc", "a", "b"]}, '(local.has_vpc ? "a" : "b")'),
        (["a", {"Fn::If": ["HasVpc", "b", {"Ref": "AWS::NoValue"}]}], 'concat(\n["a"],\n[for value in ["b"] : value if local.has_vpc]\n)'),
        ({"a": {"Fn::If": ["HasVpc", 1, {"Ref": "AWS::NoValue"}]}},
         'merge(\n{  },\n{ for name, value in { "a" = 1 } : name => value if local.has_vpc }\n)'),
        ("${not.ours} and %{this}", '"$${not.ours} and %%{this}"'),
    ],
)  # fmt: skip
def test_values_in_both_languages(value: object, said: str) -> None:
    assert Module(read_template()).expression(value) == said

"""Roles and policies of the stack, and what parameters of it may be given."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import pytest

from harness.wire.template import ROOT, read_template, resolved, resources, with_everything


@pytest.fixture(scope="module")
def template() -> dict[str, Any]:
    return read_template()


def _variables(template: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = template["Globals"]["Function"]["Environment"]["Variables"]
    return found


def test_each_function_has_a_role_of_its_own_and_names_no_partition(template: dict[str, Any]) -> None:
    functions = resources(template, "AWS::Serverless::Function")

    assert {name: entry["Properties"]["Role"] for name, entry in functions.items()} == {
        "WatchFunction": {"Fn::GetAtt": "WatchRole.Arn"},
        "ResyncFunction": {"Fn::GetAtt": "ResyncRole.Arn"},
    }
    text = (ROOT / "template.yaml").read_text()
    assert re.findall(r"arn:aws:(?!route53:::hostedzone/Z0123456789ABCDEFGHIJ)", text) == []


def test_no_policy_allows_a_wildcard(template: dict[str, Any]) -> None:
    roles = with_everything(resources(template, "AWS::IAM::Role"))
    managed = with_everything(resources(template, "AWS::IAM::ManagedPolicy"))
    documents = [policy["PolicyDocument"] for role in roles.values() for policy in role["Properties"]["Policies"]]
    documents += [policy["Properties"]["PolicyDocument"] for policy in managed.values()]
    allowed = [each for document in documents for each in document["Statement"] if each["Effect"] == "Allow"]

    assert len(allowed) > 20
    # The first two know no resources; the third ends a prefix that a person gave.
    wild = [each for each in allowed if "*" in str(each["Resource"])]
    assert [each["Sid"] for each in wild] == ["Subnets", "Subnets", "SecretsByPrefix", "AwsIdentity"]
    assert all("*" not in str(statement["Action"]) for statement in allowed)


FULL: Final = {
    "HostedZoneArns": "arn:aws-us-gov:route53:::hostedzone/Z0123456789ABCDEFGHIJ",
    "SecretArns": "arn:aws-us-gov:secretsmanager:us-gov-west-1:123456789012:secret:kubesync/prod-a1B2c3",
    "ParameterArns": "arn:aws-us-gov:ssm:us-gov-west-1:123456789012:parameter/kubesync/prod",
    "SecretKeyArns": "arn:aws-us-gov:kms:us-gov-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab",
    "RoleArns": "arn:aws-us-gov:iam::123456789012:role/kubesync-zones",
    "AwsIdentityAudiences": "https://a.example.com",
}
_PSEUDO: Final = {"AWS::Partition": "aws-us-gov", "AWS::Region": "us-gov-west-1", "AWS::AccountId": "123456789012"}


def _filled(value: Any) -> Any:
    """A policy as CloudFormation sends it: full parameters, and the longest names that there can be."""
    match value:
        case {"Ref": name} if name in FULL:
            return ",".join([FULL[name]] * (4_097 // (len(FULL[name]) + 1))).split(",")
        case {"Ref": name}:
            return _PSEUDO.get(name, "x" * 64)
        case {"Fn::GetAtt": _}:
            return (
                "arn:aws-us-gov:dynamodb:us-gov-west-1:123456789012:table/kubesync-"
                + "d" * 24
                + "-upstreams"
                + "x" * 20
            )
        case {"Fn::Split": [separator, text]}:
            return str(_filled(text)).split(separator)
        case {"Fn::Sub": text}:
            patterns = ",".join(["*.team-a.example.com"] * 95)
            names = {**_PSEUDO, "DeploymentId": "d" * 24, "SecretPrefix": "p" * 256, "RecordNames": patterns}
            return re.sub(r"\$\{(.+?)\}", lambda found: names[found[1]], text)
        case dict():
            return {name: _filled(each) for name, each in value.items()}
        case list():
            return [_filled(each) for each in value]
    return value


def _characters(document: Any) -> int:
    return len(json.dumps(_filled(document), separators=(",", ":")))


def test_policies_with_full_parameters_stay_within_the_limits_of_iam(template: dict[str, Any]) -> None:
    # https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
    roles = with_everything(resources(template, "AWS::IAM::Role"))
    for name, role in roles.items():
        inline = sum(_characters(policy["PolicyDocument"]) for policy in role["Properties"]["Policies"])
        assert inline <= 10_240, name
        assert len(role["Properties"].get("ManagedPolicyArns", ())) <= 10, name
    managed = with_everything(resources(template, "AWS::IAM::ManagedPolicy"))
    assert len(managed) == 6
    for name, policy in managed.items():
        assert _characters(policy["Properties"]["PolicyDocument"]) <= 6_144, name
    assert len(_filled({"Ref": "SecretArns"})) >= 46


def test_keys_decrypt_for_secrets_only(template: dict[str, Any]) -> None:
    (statement,) = template["Resources"]["SecretKeysPolicy"]["Properties"]["PolicyDocument"]["Statement"]

    services = [each["Fn::Sub"] for each in statement["Condition"]["StringLike"]["kms:ViaService"]]
    assert services == ["secretsmanager.${AWS::Region}.amazonaws.com*", "ssm.${AWS::Region}.amazonaws.com*"]


def test_scheduler_assumes_its_role_for_the_group_of_the_schedules_only(template: dict[str, Any]) -> None:
    (statement,) = template["Resources"]["SchedulerRole"]["Properties"]["AssumeRolePolicyDocument"]["Statement"]

    group = {"Fn::Sub": "arn:${AWS::Partition}:scheduler:${AWS::Region}:${AWS::AccountId}:schedule-group/default"}
    assert statement["Condition"]["StringEquals"] == {
        "aws:SourceAccount": {"Ref": "AWS::AccountId"},
        "aws:SourceArn": group,
    }
    schedules = resources(template, "AWS::Scheduler::Schedule").values()
    assert [each["Properties"].get("GroupName", "default") for each in schedules] == ["default", "default"]


def test_tokens_of_the_aws_identity_are_for_the_audiences_that_were_given(template: dict[str, Any]) -> None:
    policy = template["Resources"]["AwsIdentityPolicy"]
    (statement,) = policy["Properties"]["PolicyDocument"]["Statement"]

    assert policy["Condition"] == "HasAudiences"
    assert statement["Condition"] == {
        "ForAllValues:StringEquals": {"sts:IdentityTokenAudience": {"Ref": "AwsIdentityAudiences"}},
        "Null": {"sts:IdentityTokenAudience": "false"},
        "NumericLessThanEquals": {"sts:DurationSeconds": 900},
    }


@pytest.mark.parametrize("given", ["", "kubesync/", "team-a/kubesync/prod/"])
def test_prefix_of_secrets_ends_at_a_slash(given: str, template: dict[str, Any]) -> None:
    pattern = template["Parameters"]["SecretPrefix"]["AllowedPattern"]

    assert re.fullmatch(pattern, given)
    assert not re.fullmatch(pattern, f"{given}x")
    assert not re.fullmatch(pattern, f"{given}*")
    assert not re.fullmatch(pattern, "/")


def test_lambda_may_look_at_subnets_in_a_vpc_and_the_functions_code_may_not(template: dict[str, Any]) -> None:
    for name in ("WatchRole", "ResyncRole"):
        properties = template["Resources"][name]["Properties"]
        (policy,) = properties["Policies"]
        in_vpc = [each["Fn::If"] for each in policy["PolicyDocument"]["Statement"] if "HasVpc" in str(each)]
        assert [(condition, otherwise) for condition, _, otherwise in in_vpc] == [
            ("HasVpc", {"Ref": "AWS::NoValue"})
        ] * 2
        looking, refused = (statement for _, statement, _ in in_vpc)
        # AWSLambdaVPCAccessExecutionRole has had it since January 2024, and logs of all groups besides.
        assert (looking["Effect"], looking["Action"]) == ("Allow", "ec2:DescribeSubnets")
        assert (refused["Effect"], refused["Action"]) == ("Deny", "ec2:*")
        assert [each["Fn::If"][0] for each in properties["ManagedPolicyArns"] if "HasVpc" in str(each)] == ["HasVpc"]


def _statements(node: Any) -> Iterator[dict[str, Any]]:
    """Every statement of a policy, wherever it stands."""
    if isinstance(node, dict):
        if "Effect" in node:
            yield node
        for each in node.values():
            yield from _statements(each)
    elif isinstance(node, list):
        for each in node:
            yield from _statements(each)


@pytest.mark.parametrize("record_names", ["", "*.prod.example.com"])
def test_keys_of_which_all_values_must_fit_must_be_there(template: dict[str, Any], record_names: str) -> None:
    # ForAllValues holds where a request has no such key:
    # https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-single-vs-multi-valued-context-keys.html
    parameters = {"DeploymentId": "test", "RecordNames": record_names, "AwsIdentityAudiences": ["sts"]}
    found = 0
    for statement in _statements(template["Resources"]):
        condition = resolved(statement.get("Condition", {}), parameters)
        keys = {key for operator, of in condition.items() if operator.startswith("ForAllValues:") for key in of}
        assert condition.get("Null", {}) == dict.fromkeys(keys, "false"), statement
        found += len(keys)
    assert found == (7 if record_names else 5)


@pytest.mark.parametrize(
    ("topic", "notify", "who"), [("", "false", "nobody"), ("arn:aws:sns:eu:1:t", "true", "arn:aws:sns:eu:1:t")]
)
def test_stack_says_who_hears_of_alarms(template: dict[str, Any], topic: str, notify: str, who: str) -> None:
    parameters = {"DeploymentId": "main", "AlarmTopicArn": topic}
    assert resolved(_variables(template)["KUBESYNC_ALARMS_NOTIFY"], parameters) == notify
    assert resolved(template["Outputs"]["AlarmsNotify"]["Value"], parameters) == who

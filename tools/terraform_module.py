"""Write deploy/terraform again from template.yaml: `make terraform`. A resource there is a resource here, with the same names and policies.

A condition becomes a local value, and ``count`` of its resources; ``AWS::NoValue`` becomes null, or a member that is left out. Names of
variables are those of the parameters, in Terraform's form: ``HostedZoneArns`` is ``hosted_zone_arns``.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from harness.wire.template import ROOT, read_template

FOLDER: Final = ROOT / "deploy/terraform"
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_MEMBER: Final = re.compile(r'( *(?:"[^"]*"|[\w-]+)) = (.+)')
_HEAD: Final = "# Made from template.yaml by `make terraform`: change the template, not this file.\n"
_NO_VALUE: Final = {"Ref": "AWS::NoValue"}
_PSEUDO: Final = {
    "AWS::NoValue": "null",
    "AWS::AccountId": "data.aws_caller_identity.this.account_id",
    "AWS::Partition": "data.aws_partition.this.partition",
    "AWS::Region": "data.aws_region.this.name",
}
# What a resource is called, what Ref gives of it, and its attributes by their names in CloudFormation.
_TYPES: Final[Mapping[str, tuple[str, str, Mapping[str, str]]]] = {
    "AWS::Serverless::Function": ("aws_lambda_function", "function_name", {"Arn": "arn"}),
    "AWS::Serverless::LayerVersion": ("aws_lambda_layer_version", "arn", {}),
    "AWS::Scheduler::Schedule": ("aws_scheduler_schedule", "name", {}),
    "AWS::SQS::Queue": ("aws_sqs_queue", "url", {"Arn": "arn", "QueueName": "name"}),
    "AWS::IAM::Role": ("aws_iam_role", "name", {"Arn": "arn"}),
    "AWS::IAM::ManagedPolicy": ("aws_iam_policy", "arn", {}),
    "AWS::Logs::LogGroup": ("aws_cloudwatch_log_group", "name", {"Arn": "arn"}),
    "AWS::DynamoDB::Table": ("aws_dynamodb_table", "name", {"Arn": "arn", "StreamArn": "stream_arn"}),
    "AWS::CloudWatch::Alarm": ("aws_cloudwatch_metric_alarm", "alarm_name", {}),
    "AWS::CloudWatch::Dashboard": ("aws_cloudwatch_dashboard", "dashboard_name", {}),
}


class Module:
    """The module that stands for a template."""

    def __init__(self, template: Mapping[str, Any]) -> None:
        self._template = template

    # --- expressions ---

    def expression(self, value: Any) -> str:
        """A value of the template in Terraform's language."""
        if isinstance(value, dict):
            if len(value) == 1:
                (name, given) = next(iter(value.items()))
                if name in self._functions:
                    return self._functions[name](self, given)
            return self._object(value)
        if isinstance(value, list):
            return self._list(value)
        return _quoted(value) if isinstance(value, str) else json.dumps(value)

    def _object(self, value: Mapping[str, Any]) -> str:
        """Members without a value are left out, also where a condition says so."""
        plain = {name: each for name, each in value.items() if not _may_be_absent(each)}
        members = [f"{_quoted(name)} = {self.expression(each)}" for name, each in plain.items()]
        parts = ["{\n" + "\n".join(members) + "\n}" if len(members) > 1 else "{ " + "".join(members) + " }"]
        for name, each in value.items():
            if _may_be_absent(each):
                condition, present = self._present(each)
                member = f"{{ {_quoted(name)} = {present} }}"
                parts.append(f"{{ for name, value in {member} : name => value if {condition} }}")
        return parts[0] if len(parts) == 1 else f"merge(\n{',\n'.join(parts)}\n)"

    def _list(self, value: list[Any]) -> str:
        if not any(map(_may_be_absent, value)):
            items = [self.expression(each) for each in value]
            return f"[\n{',\n'.join(items)}\n]" if any("\n" in each for each in items) else f"[{', '.join(items)}]"
        parts: list[str] = []
        for each in value:
            if _may_be_absent(each):
                condition, present = self._present(each)
                parts.append(f"[for value in [{present}] : value if {condition}]")
            else:
                parts.append(f"[{self.expression(each)}]")
        return f"concat(\n{',\n'.join(parts)}\n)"

    def _present(self, value: Mapping[str, Any]) -> tuple[str, str]:
        condition, yes, no = value["Fn::If"]
        if no != _NO_VALUE or _may_be_absent(yes):
            raise ValueError(f"only the second branch may be AWS::NoValue: {value}")
        return f"local.{_snake(condition)}", self.expression(yes)

    def _ref(self, name: str) -> str:
        if name in _PSEUDO:
            return _PSEUDO[name]
        if name in self._template["Parameters"]:
            return f"var.{_snake(name)}"
        return self._attribute(name, _TYPES[self._template["Resources"][name]["Type"]][1])

    def _get_att(self, text: str | list[str]) -> str:
        name, attribute = text.split(".") if isinstance(text, str) else text
        resource = self._template["Resources"][name]
        found = self._attribute(name, _TYPES[resource["Type"]][2][attribute])
        # CloudFormation's ARN of a group names its streams as well, and policies need that.
        return f'"${{{found}}}:*"' if resource["Type"] == "AWS::Logs::LogGroup" else found

    def _attribute(self, name: str, attribute: str) -> str:
        address = self._address(name)
        conditional = "Condition" in self._template["Resources"][name]
        return f"one({address}[*].{attribute})" if conditional else f"{address}.{attribute}"

    def _address(self, name: str) -> str:
        return f"{_TYPES[self._template['Resources'][name]['Type']][0]}.{_snake(name)}"

    def _sub(self, text: str) -> str:
        pieces = re.split(r"\$\{([^}!]+)\}", text)
        said = []
        for number, piece in enumerate(pieces):
            if number % 2 == 0:
                said.append(_quoted(piece)[1:-1])
            else:
                said.append("${" + (self._get_att(piece) if "." in piece else self._ref(piece)) + "}")
        return f'"{"".join(said)}"'

    def _if(self, given: list[Any]) -> str:
        condition, yes, no = given
        return f"(local.{_snake(condition)} ? {self.expression(yes)} : {self.expression(no)})"

    def _equals(self, given: list[Any]) -> str:
        return f"{self.expression(given[0])} == {self.expression(given[1])}"

    def _with_separator(self, function: str, given: list[Any]) -> str:
        return f"{function}({_quoted(given[0])}, {self.expression(given[1])})"

    def _find(self, given: list[Any]) -> str:
        mapping, key, name = given
        return f"local.{_snake(mapping)}[tostring({self.expression(key)})].{name}"

    def _all_of(self, between: str, given: list[Any]) -> str:
        return f"({between.join(map(self.expression, given))})"

    _functions: Final[Mapping[str, Callable[[Any, Any], str]]] = {
        "Ref": _ref,
        "Condition": lambda _self, name: f"local.{_snake(name)}",
        "Fn::Sub": _sub,
        "Fn::GetAtt": _get_att,
        "Fn::If": _if,
        "Fn::Equals": _equals,
        "Fn::Not": lambda self, given: f"!({self.expression(given[0])})",
        "Fn::And": lambda self, given: self._all_of(" && ", given),
        "Fn::Or": lambda self, given: self._all_of(" || ", given),
        "Fn::Join": lambda self, given: self._with_separator("join", given),
        "Fn::Split": lambda self, given: self._with_separator("split", given),
        "Fn::FindInMap": _find,
    }

    # --- files ---

    def variables(self) -> str:
        """variables.tf"""
        parts = [_HEAD]
        for name, parameter in self._template["Parameters"].items():
            parts.append(f'variable "{_snake(name)}" {{\n{"".join(_variable(name, parameter))}}}\n')
        parts.append(
            'variable "artifacts" {\n  description = "Folder with the zip files of functions and layers: `make terraform-artifacts` makes them '
            'in dist/terraform"\n  type        = string\n}\n'
        )
        return "\n".join(parts)

    def outputs(self) -> str:
        """outputs.tf"""
        parts = [_HEAD]
        for name, output in self._template["Outputs"].items():
            described = f"  description = {_quoted(output['Description'])}\n"
            parts.append(f'output "{_snake(name)}" {{\n{described}  value = {self.expression(output["Value"])}\n}}\n')
        return "\n".join(parts)

    def main(self) -> str:
        """main.tf"""
        known = [
            f"  {_snake(name)} = {self.expression(condition)}\n"
            for name, condition in {**self._template["Conditions"], **self._template["Mappings"]}.items()
        ]
        data = [f'data "{name}" "this" {{}}\n' for name in ("aws_caller_identity", "aws_partition", "aws_region")]
        parts = [_HEAD, *data, f"locals {{\n{''.join(known)}}}\n"]
        for name, resource in self._template["Resources"].items():
            parts += self._resource(name, resource)
        return "\n".join(parts)

    def _resource(self, name: str, resource: Mapping[str, Any]) -> Iterator[str]:
        kind = _TYPES[resource["Type"]][0]
        properties = dict(resource["Properties"])
        if resource["Type"] == "AWS::Serverless::Function":
            properties = {**self._template["Globals"]["Function"], **properties}
        body = [f"  count = local.{_snake(resource['Condition'])} ? 1 : 0\n"] if "Condition" in resource else []
        body += getattr(self, f"_{kind.removeprefix('aws_')}")(name, properties)
        if resource.get("DeletionPolicy") == "Retain":
            body.append("  lifecycle {\n    prevent_destroy = true\n  }\n")
        yield f'resource "{kind}" "{_snake(name)}" {{\n{"".join(body)}}}\n'
        yield from getattr(self, f"_beside_{kind.removeprefix('aws_')}", lambda *_: ())(name, properties)

    def _set(self, given: Mapping[str, Any], **names: str) -> list[str]:
        """``terraform_name = value`` of each property that the template gives."""
        return [f"  {ours} = {self.expression(given[name])}\n" for ours, name in names.items() if name in given]

    def _block(self, name: str, lines: list[str]) -> list[str]:
        return [f"  {name} {{\n", *(f"  {line}" for line in lines), "  }\n"]

    def _lambda_function(self, _name: str, given: Mapping[str, Any]) -> list[str]:
        function = Path(given["CodeUri"]).name
        vpc = given["VpcConfig"]["Fn::If"]
        return [
            *self._set(given, function_name="FunctionName", description="Description", runtime="Runtime"),
            *self._set(given, architectures="Architectures", handler="Handler", timeout="Timeout"),
            *self._set(given, memory_size="MemorySize", role="Role", layers="Layers"),
            *self._set(given, reserved_concurrent_executions="ReservedConcurrentExecutions"),
            *_archive(f"{function}.zip"),
            *self._block("environment", self._set(given["Environment"], variables="Variables")),
            *self._block(
                "logging_config",
                ['  log_format = "Text"\n', *self._set(given["LoggingConfig"], log_group="LogGroup")],
            ),
            f'  dynamic "vpc_config" {{\n    for_each = local.{_snake(vpc[0])} ? [1] : []\n    content {{\n',
            *(
                f"    {line}"
                for line in self._set(vpc[1], subnet_ids="SubnetIds", security_group_ids="SecurityGroupIds")
            ),
            "    }\n  }\n",
        ]

    def _beside_lambda_function(self, name: str, given: Mapping[str, Any]) -> Iterator[str]:
        config = given["EventInvokeConfig"]
        failure = self._set(config["DestinationConfig"]["OnFailure"], destination="Destination")
        body = [
            f"  function_name = {self._ref(name)}\n",
            *self._set(config, maximum_retry_attempts="MaximumRetryAttempts"),
            *self._set(config, maximum_event_age_in_seconds="MaximumEventAgeInSeconds"),
            *self._block("destination_config", self._block("on_failure", failure)),
        ]
        yield f'resource "aws_lambda_function_event_invoke_config" "{_snake(name)}" {{\n{"".join(body)}}}\n'

    def _lambda_layer_version(self, name: str, given: Mapping[str, Any]) -> list[str]:
        return [
            *self._set(given, layer_name="LayerName", description="Description"),
            *self._set(given, compatible_runtimes="CompatibleRuntimes"),
            *self._set(given, compatible_architectures="CompatibleArchitectures"),
            *_archive(f"{name}.zip"),
            "  skip_destroy = true\n",
        ]

    def _scheduler_schedule(self, _name: str, given: Mapping[str, Any]) -> list[str]:
        target = given["Target"]
        retry = self._set(
            target["RetryPolicy"],
            maximum_retry_attempts="MaximumRetryAttempts",
            maximum_event_age_in_seconds="MaximumEventAgeInSeconds",
        )
        return [
            *self._set(given, name="Name", description="Description", schedule_expression="ScheduleExpression"),
            *self._set(given, state="State"),
            *self._block("flexible_time_window", self._set(given["FlexibleTimeWindow"], mode="Mode")),
            *self._block(
                "target",
                [
                    *self._set(target, arn="Arn", role_arn="RoleArn", input="Input"),
                    *self._block("retry_policy", retry),
                    *self._block("dead_letter_config", self._set(target["DeadLetterConfig"], arn="Arn")),
                ],
            ),
        ]

    def _sqs_queue(self, _name: str, given: Mapping[str, Any]) -> list[str]:
        return self._set(
            given,
            name="QueueName",
            message_retention_seconds="MessageRetentionPeriod",
            sqs_managed_sse_enabled="SqsManagedSseEnabled",
        )

    def _iam_role(self, name: str, given: Mapping[str, Any]) -> list[str]:
        return [
            f'  name_prefix = "kubesync-{name}-"\n',
            f"  assume_role_policy = jsonencode({self.expression(given['AssumeRolePolicyDocument'])})\n",
        ]

    def _beside_iam_role(self, name: str, given: Mapping[str, Any]) -> Iterator[str]:
        role = f"aws_iam_role.{_snake(name)}"
        for policy in given["Policies"]:
            document = self.expression(policy["PolicyDocument"])
            yield (
                f'resource "aws_iam_role_policy" "{_snake(name)}_{policy["PolicyName"]}" {{\n  name = {_quoted(policy["PolicyName"])}\n'
                f"  role = {role}.id\n  policy = jsonencode({document})\n}}\n"
            )
        for number, attached in enumerate(given.get("ManagedPolicyArns", ())):
            condition, arn = self._present(attached) if _may_be_absent(attached) else ("", self.expression(attached))
            count = f"  count = {condition} ? 1 : 0\n" if condition else ""
            yield (
                f'resource "aws_iam_role_policy_attachment" "{_snake(name)}_{number}" {{\n{count}'
                f"  role = {role}.name\n  policy_arn = {arn}\n}}\n"
            )

    def _iam_policy(self, name: str, given: Mapping[str, Any]) -> list[str]:
        return [
            f'  name_prefix = "kubesync-{name}-"\n',
            *self._set(given, description="Description"),
            f"  policy = jsonencode({self.expression(given['PolicyDocument'])})\n",
        ]

    def _cloudwatch_log_group(self, _name: str, given: Mapping[str, Any]) -> list[str]:
        return self._set(given, name="LogGroupName", retention_in_days="RetentionInDays")

    def _dynamodb_table(self, _name: str, given: Mapping[str, Any]) -> list[str]:
        keys = {each["KeyType"]: each["AttributeName"] for each in given["KeySchema"]}
        lines = [
            *self._set(given, name="TableName", billing_mode="BillingMode"),
            *self._set(given, deletion_protection_enabled="DeletionProtectionEnabled"),
            f"  hash_key = {_quoted(keys['HASH'])}\n  range_key = {_quoted(keys['RANGE'])}\n",
        ]
        for attribute in given["AttributeDefinitions"]:
            lines += self._block("attribute", self._set(attribute, name="AttributeName", type="AttributeType"))
        if "StreamSpecification" in given:
            lines.append("  stream_enabled = true\n")
            lines += self._set(given["StreamSpecification"], stream_view_type="StreamViewType")
        if "TimeToLiveSpecification" in given:
            ttl = given["TimeToLiveSpecification"]
            lines += self._block("ttl", self._set(ttl, attribute_name="AttributeName", enabled="Enabled"))
        recovery = given["PointInTimeRecoverySpecification"]
        lines += self._block("point_in_time_recovery", self._set(recovery, enabled="PointInTimeRecoveryEnabled"))
        return lines + self._block("server_side_encryption", self._set(given["SSESpecification"], enabled="SSEEnabled"))

    def _cloudwatch_metric_alarm(self, _name: str, given: Mapping[str, Any]) -> list[str]:
        dimensions = {each["Name"]: each["Value"] for each in given.get("Dimensions", ())}
        return [
            *self._set(given, alarm_name="AlarmName", alarm_description="AlarmDescription", namespace="Namespace"),
            *self._set(given, metric_name="MetricName", statistic="Statistic", period="Period"),
            f"  dimensions = {self.expression(dimensions)}\n",
            *self._set(given, evaluation_periods="EvaluationPeriods", datapoints_to_alarm="DatapointsToAlarm"),
            *self._set(given, threshold="Threshold", comparison_operator="ComparisonOperator"),
            *self._set(given, treat_missing_data="TreatMissingData", actions_enabled="ActionsEnabled"),
            *self._set(given, alarm_actions="AlarmActions", ok_actions="OKActions"),
        ]

    def _cloudwatch_dashboard(self, _name: str, given: Mapping[str, Any]) -> list[str]:
        return self._set(given, dashboard_name="DashboardName", dashboard_body="DashboardBody")


def files(template: Mapping[str, Any]) -> dict[str, str]:
    """The files of the module that are made, by name."""
    module = Module(template)
    made = {"main.tf": module.main(), "outputs.tf": module.outputs(), "variables.tf": module.variables()}
    return {name: _indented(text) for name, text in made.items()}


def _indented(text: str) -> str:
    """Two spaces for each line that leaves brackets open; brackets in strings do not count."""
    lines: list[str] = []
    open_brackets: list[int] = []  # of each such line
    for line in map(str.strip, text.splitlines()):
        bare = _STRING.sub("", line).strip()
        rest = bare.lstrip(")]} ")
        before, closes = len(open_brackets), rest != bare
        _close(open_brackets, sum(map(bare.count, ")]}")) - sum(map(rest.count, ")]}")))
        lines.append("  " * min(len(open_brackets), before - closes) + line if line else "")
        balance = sum(map(rest.count, "([{")) - sum(map(rest.count, ")]}"))
        if balance > 0:
            open_brackets.append(balance)
        else:
            _close(open_brackets, -balance)
    return "\n".join(_aligned(lines)).rstrip("\n") + "\n"


def _close(open_brackets: list[int], closed: int) -> None:
    for _ in range(closed):
        open_brackets[-1] -= 1
        if not open_brackets[-1]:
            open_brackets.pop()


def _aligned(lines: list[str]) -> Iterator[str]:
    """Values of neighbours begin in one column, as `terraform fmt` has it."""
    neighbours: list[tuple[str, str]] = []
    for line in [*lines, ""]:
        found = _MEMBER.fullmatch(line)
        bare = _STRING.sub("", line)
        if found and all(bare.count(opened) == bare.count(closed) for opened, closed in ("()", "[]", "{}")):
            neighbours.append((found[1], found[2]))
            continue
        width = max((len(name) for name, _ in neighbours), default=0)
        yield from (f"{name:<{width}} = {value}" for name, value in neighbours)
        neighbours.clear()
        yield line


def _variable(name: str, parameter: Mapping[str, Any]) -> Iterator[str]:
    many, number = parameter["Type"] == "CommaDelimitedList", parameter["Type"] == "Number"
    yield f"  description = {_quoted(parameter['Description'])}\n"
    yield f"  type = {'list(string)' if many else 'number' if number else 'string'}\n"
    if "Default" in parameter:
        default = parameter["Default"]
        yield f"  default = {json.dumps([each for each in default.split(',') if each] if many else default)}\n"
    variable, checks = f"var.{_snake(name)}", []
    if "AllowedPattern" in parameter:
        matches = f"can(regex({_quoted('^(?:' + parameter['AllowedPattern'] + ')$')}, {{}}))"
        checks.append(
            f"alltrue([for each in {variable} : {matches.replace('{}', 'each')}])"
            if many
            else matches.replace("{}", variable)
        )
    if "AllowedValues" in parameter:
        checks.append(f"contains({json.dumps(parameter['AllowedValues'])}, {variable})")
    checks += [f"{variable} >= {parameter['MinValue']}"] if "MinValue" in parameter else []
    checks += [f"{variable} <= {parameter['MaxValue']}"] if "MaxValue" in parameter else []
    checks += [f"length({variable}) <= {parameter['MaxLength']}"] if "MaxLength" in parameter else []
    if checks:
        said = parameter.get("ConstraintDescription", "one of the values that the description allows")
        yield "  validation {\n"
        yield f"    condition = {' && '.join(checks)}\n"
        yield f"    error_message = {_quoted(f'{_snake(name)}: {said}.')}\n  }}\n"


def _archive(name: str) -> list[str]:
    path = f'"${{var.artifacts}}/{name}"'
    return [f"  filename = {path}\n", f"  source_code_hash = filebase64sha256({path})\n"]


def _may_be_absent(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"Fn::If"} and value["Fn::If"][2] == _NO_VALUE


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("${", "$${").replace("%{", "%%{")


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def main() -> int:
    """Write the files."""
    for name, text in files(read_template()).items():
        (FOLDER / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())

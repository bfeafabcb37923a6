# Made from template.yaml by `make terraform`: change the template, not this file.

data "aws_caller_identity" "this" {}

data "aws_partition" "this" {}

data "aws_region" "this" {}

locals {
  has_vpc                 = !(join("", var.subnet_ids) == "")
  has_reservation         = !(var.reserved_concurrency == 0)
  has_dashboard           = var.with_dashboard == "true"
  has_alarm_topic         = !(var.alarm_topic_arn == "")
  has_record_names        = !(var.record_names == "")
  has_secrets             = !(join("", var.secret_arns) == "")
  has_secret_prefix       = !(var.secret_prefix == "")
  has_any_secrets         = (local.has_secrets || local.has_secret_prefix)
  has_audiences           = !(join("", var.aws_identity_audiences) == "")
  has_parameters          = !(join("", var.parameter_arns) == "")
  has_secret_keys         = !(join("", var.secret_key_arns) == "")
  has_roles               = !(join("", var.role_arns) == "")
  has_resync_schedule     = !(var.resync_schedule == "")
  is_scheduled            = var.schedule_state == "ENABLED"
  has_default_reservation = var.reserved_concurrency == 3
  has_shard15             = var.shards == 16
  has_shard14             = (local.has_shard15 || var.shards == 15)
  has_shard13             = (local.has_shard14 || var.shards == 14)
  has_shard12             = (local.has_shard13 || var.shards == 13)
  has_shard11             = (local.has_shard12 || var.shards == 12)
  has_shard10             = (local.has_shard11 || var.shards == 11)
  has_shard9              = (local.has_shard10 || var.shards == 10)
  has_shard8              = (local.has_shard9 || var.shards == 9)
  has_shard7              = (local.has_shard8 || var.shards == 8)
  has_shard6              = (local.has_shard7 || var.shards == 7)
  has_shard5              = (local.has_shard6 || var.shards == 6)
  has_shard4              = (local.has_shard5 || var.shards == 5)
  has_shard3              = (local.has_shard4 || var.shards == 4)
  has_shard2              = (local.has_shard3 || var.shards == 3)
  has_shard1              = (local.has_shard2 || var.shards == 2)
  resyncs_shard1          = (local.has_shard1 && local.has_resync_schedule)
  resyncs_shard2          = (local.has_shard2 && local.has_resync_schedule)
  resyncs_shard3          = (local.has_shard3 && local.has_resync_schedule)
  resyncs_shard4          = (local.has_shard4 && local.has_resync_schedule)
  resyncs_shard5          = (local.has_shard5 && local.has_resync_schedule)
  resyncs_shard6          = (local.has_shard6 && local.has_resync_schedule)
  resyncs_shard7          = (local.has_shard7 && local.has_resync_schedule)
  resyncs_shard8          = (local.has_shard8 && local.has_resync_schedule)
  resyncs_shard9          = (local.has_shard9 && local.has_resync_schedule)
  resyncs_shard10         = (local.has_shard10 && local.has_resync_schedule)
  resyncs_shard11         = (local.has_shard11 && local.has_resync_schedule)
  resyncs_shard12         = (local.has_shard12 && local.has_resync_schedule)
  resyncs_shard13         = (local.has_shard13 && local.has_resync_schedule)
  resyncs_shard14         = (local.has_shard14 && local.has_resync_schedule)
  resyncs_shard15         = (local.has_shard15 && local.has_resync_schedule)
  is_arm                  = var.architecture == "arm64"
  is_intel                = !(local.is_arm)
  concurrency = {
    "1"  = { "Reserved" = 3 }
    "2"  = { "Reserved" = 6 }
    "3"  = { "Reserved" = 9 }
    "4"  = { "Reserved" = 12 }
    "5"  = { "Reserved" = 15 }
    "6"  = { "Reserved" = 18 }
    "7"  = { "Reserved" = 21 }
    "8"  = { "Reserved" = 24 }
    "9"  = { "Reserved" = 27 }
    "10" = { "Reserved" = 30 }
    "11" = { "Reserved" = 33 }
    "12" = { "Reserved" = 36 }
    "13" = { "Reserved" = 39 }
    "14" = { "Reserved" = 42 }
    "15" = { "Reserved" = 45 }
    "16" = { "Reserved" = 48 }
  }
}

resource "aws_lambda_function" "watch_function" {
  function_name                  = "kubesync-${var.deployment_id}-watch"
  description                    = "Runs one session. It takes the lease, watches all clusters and writes changes"
  runtime                        = "python3.13"
  architectures                  = [var.architecture]
  handler                        = "app.handler"
  timeout                        = 900
  memory_size                    = var.memory_size
  role                           = aws_iam_role.watch_role.arn
  layers                         = [(local.is_arm ? one(aws_lambda_layer_version.dependencies_layer_arm[*].arn) : one(aws_lambda_layer_version.dependencies_layer[*].arn)), aws_lambda_layer_version.kubesync_layer.arn]
  reserved_concurrent_executions = (local.has_default_reservation ? local.concurrency[tostring(var.shards)].Reserved : (local.has_reservation ? var.reserved_concurrency : null))
  filename                       = "${var.artifacts}/watch.zip"
  source_code_hash               = filebase64sha256("${var.artifacts}/watch.zip")
  environment {
    variables = {
      "KUBESYNC_DEPLOYMENT"              = var.deployment_id
      "KUBESYNC_TABLE_PREFIX"            = "kubesync-${var.deployment_id}"
      "KUBESYNC_MAX_RUNTIME_SECONDS"     = var.maximum_runtime_seconds
      "KUBESYNC_SHARDS"                  = var.shards
      "KUBESYNC_CLUSTER_METRICS"         = var.cluster_metrics
      "KUBESYNC_DASHBOARD_METRICS"       = var.with_dashboard
      "KUBESYNC_ALARMS_NOTIFY"           = (local.has_alarm_topic ? "true" : "false")
      "KUBESYNC_NO_MASTER_MINUTES"       = var.no_master_minutes
      "POWERTOOLS_SERVICE_NAME"          = "kubesync"
      "POWERTOOLS_LOG_LEVEL"             = var.log_level
      "MALLOC_ARENA_MAX"                 = "1"
      "AWS_ENDPOINT_URL_DYNAMODB"        = ""
      "AWS_ENDPOINT_URL_ROUTE_53"        = ""
      "AWS_ENDPOINT_URL_SECRETS_MANAGER" = ""
      "AWS_ENDPOINT_URL_SSM"             = ""
      "AWS_ENDPOINT_URL_STS"             = ""
      "AWS_ENDPOINT_URL_EKS"             = ""
    }
  }
  logging_config {
    log_format = "Text"
    log_group  = aws_cloudwatch_log_group.watch_log_group.name
  }
  dynamic "vpc_config" {
    for_each = local.has_vpc ? [1] : []
    content {
      subnet_ids         = var.subnet_ids
      security_group_ids = var.security_group_ids
    }
  }
}

resource "aws_lambda_function_event_invoke_config" "watch_function" {
  function_name                = aws_lambda_function.watch_function.function_name
  maximum_retry_attempts       = 0
  maximum_event_age_in_seconds = 60
  destination_config {
    on_failure {
      destination = aws_sqs_queue.dead_letters.arn
    }
  }
}

resource "aws_lambda_function" "resync_function" {
  function_name    = "kubesync-${var.deployment_id}-resync"
  description      = "Runs a full resync of one or all clusters, or a dry run; on a schedule and by hand"
  runtime          = "python3.13"
  architectures    = [var.architecture]
  handler          = "app.handler"
  timeout          = 900
  memory_size      = var.memory_size
  role             = aws_iam_role.resync_role.arn
  layers           = [(local.is_arm ? one(aws_lambda_layer_version.dependencies_layer_arm[*].arn) : one(aws_lambda_layer_version.dependencies_layer[*].arn)), aws_lambda_layer_version.kubesync_layer.arn]
  filename         = "${var.artifacts}/resync.zip"
  source_code_hash = filebase64sha256("${var.artifacts}/resync.zip")
  environment {
    variables = {
      "KUBESYNC_DEPLOYMENT"              = var.deployment_id
      "KUBESYNC_TABLE_PREFIX"            = "kubesync-${var.deployment_id}"
      "KUBESYNC_MAX_RUNTIME_SECONDS"     = var.maximum_runtime_seconds
      "KUBESYNC_SHARDS"                  = var.shards
      "KUBESYNC_CLUSTER_METRICS"         = var.cluster_metrics
      "KUBESYNC_DASHBOARD_METRICS"       = var.with_dashboard
      "KUBESYNC_ALARMS_NOTIFY"           = (local.has_alarm_topic ? "true" : "false")
      "KUBESYNC_NO_MASTER_MINUTES"       = var.no_master_minutes
      "POWERTOOLS_SERVICE_NAME"          = "kubesync"
      "POWERTOOLS_LOG_LEVEL"             = var.log_level
      "MALLOC_ARENA_MAX"                 = "1"
      "AWS_ENDPOINT_URL_DYNAMODB"        = ""
      "AWS_ENDPOINT_URL_ROUTE_53"        = ""
      "AWS_ENDPOINT_URL_SECRETS_MANAGER" = ""
      "AWS_ENDPOINT_URL_SSM"             = ""
      "AWS_ENDPOINT_URL_STS"             = ""
      "AWS_ENDPOINT_URL_EKS"             = ""
    }
  }
  logging_config {
    log_format = "Text"
    log_group  = aws_cloudwatch_log_group.resync_log_group.name
  }
  dynamic "vpc_config" {
    for_each = local.has_vpc ? [1] : []
    content {
      subnet_ids         = var.subnet_ids
      security_group_ids = var.security_group_ids
    }
  }
}

resource "aws_lambda_function_event_invoke_config" "resync_function" {
  function_name                = aws_lambda_function.resync_function.function_name
  maximum_retry_attempts       = 0
  maximum_event_age_in_seconds = 60
  destination_config {
    on_failure {
      destination = aws_sqs_queue.dead_letters.arn
    }
  }
}

resource "aws_lambda_layer_version" "dependencies_layer" {
  count                    = local.is_intel ? 1 : 0
  layer_name               = "kubesync-${var.deployment_id}-dependencies"
  description              = "Pinned libraries of kubesync"
  compatible_runtimes      = ["python3.13"]
  compatible_architectures = ["x86_64"]
  filename                 = "${var.artifacts}/DependenciesLayer.zip"
  source_code_hash         = filebase64sha256("${var.artifacts}/DependenciesLayer.zip")
  skip_destroy             = true
}

resource "aws_lambda_layer_version" "dependencies_layer_arm" {
  count                    = local.is_arm ? 1 : 0
  layer_name               = "kubesync-${var.deployment_id}-dependencies-arm64"
  description              = "Pinned libraries of kubesync"
  compatible_runtimes      = ["python3.13"]
  compatible_architectures = ["arm64"]
  filename                 = "${var.artifacts}/DependenciesLayerArm.zip"
  source_code_hash         = filebase64sha256("${var.artifacts}/DependenciesLayerArm.zip")
  skip_destroy             = true
}

resource "aws_lambda_layer_version" "kubesync_layer" {
  layer_name               = "kubesync-${var.deployment_id}"
  description              = "The kubesync package"
  compatible_runtimes      = ["python3.13"]
  compatible_architectures = ["x86_64", "arm64"]
  filename                 = "${var.artifacts}/KubesyncLayer.zip"
  source_code_hash         = filebase64sha256("${var.artifacts}/KubesyncLayer.zip")
  skip_destroy             = true
}

resource "aws_scheduler_schedule" "watch_schedule" {
  name                = "kubesync-${var.deployment_id}-watch"
  description         = "Starts a session of kubesync"
  schedule_expression = var.schedule
  state               = var.schedule_state
  flexible_time_window {
    mode = "OFF"
  }
  target {
    arn      = aws_lambda_function.watch_function.arn
    role_arn = aws_iam_role.scheduler_role.arn
    retry_policy {
      maximum_retry_attempts       = 0
      maximum_event_age_in_seconds = 60
    }
    dead_letter_config {
      arn = aws_sqs_queue.dead_letters.arn
    }
  }
}

resource "aws_scheduler_schedule" "resync_every" {
  count               = local.has_resync_schedule ? 1 : 0
  name                = "kubesync-${var.deployment_id}-resync"
  description         = "Starts a full resync of kubesync"
  schedule_expression = var.resync_schedule
  state               = var.schedule_state
  flexible_time_window {
    mode = "OFF"
  }
  target {
    arn      = aws_lambda_function.resync_function.arn
    role_arn = aws_iam_role.scheduler_role.arn
    input    = "{\"dry_run\": false, \"force\": false, \"scheduled\": true}"
    retry_policy {
      maximum_retry_attempts       = 0
      maximum_event_age_in_seconds = 60
    }
    dead_letter_config {
      arn = aws_sqs_queue.dead_letters.arn
    }
  }
}

resource "aws_sqs_queue" "dead_letters" {
  name                      = "kubesync-${var.deployment_id}-dead-letters"
  message_retention_seconds = 1209600
  sqs_managed_sse_enabled   = true
}

resource "aws_iam_role" "scheduler_role" {
  name_prefix = "kubesync-SchedulerRole-"
  assume_role_policy = jsonencode({
    "Version" = "2012-10-17"
    "Statement" = [
      {
        "Effect"    = "Allow"
        "Principal" = { "Service" = "scheduler.amazonaws.com" }
        "Action"    = "sts:AssumeRole"
        "Condition" = { "StringEquals" = {
          "aws:SourceAccount" = data.aws_caller_identity.this.account_id
          "aws:SourceArn"     = "arn:${data.aws_partition.this.partition}:scheduler:${data.aws_region.this.name}:${data.aws_caller_identity.this.account_id}:schedule-group/default"
        } }
      }
    ]
  })
}

resource "aws_iam_role_policy" "scheduler_role_start" {
  name = "start"
  role = aws_iam_role.scheduler_role.id
  policy = jsonencode({
    "Version" = "2012-10-17"
    "Statement" = [
      {
        "Sid"      = "Functions"
        "Effect"   = "Allow"
        "Action"   = "lambda:InvokeFunction"
        "Resource" = [aws_lambda_function.watch_function.arn, aws_lambda_function.resync_function.arn]
      },
      {
        "Sid"      = "DeadLetters"
        "Effect"   = "Allow"
        "Action"   = "sqs:SendMessage"
        "Resource" = aws_sqs_queue.dead_letters.arn
      }
    ]
  })
}

resource "aws_iam_role" "watch_role" {
  name_prefix = "kubesync-WatchRole-"
  assume_role_policy = jsonencode({
    "Version" = "2012-10-17"
    "Statement" = [
      {
        "Effect"    = "Allow"
        "Principal" = { "Service" = "lambda.amazonaws.com" }
        "Action"    = "sts:AssumeRole"
      }
    ]
  })
}

resource "aws_iam_role_policy" "watch_role_kubesync" {
  name = "kubesync"
  role = aws_iam_role.watch_role.id
  policy = jsonencode({
    "Version" = "2012-10-17"
    "Statement" = concat(
      [{
        "Sid"      = "Control"
        "Effect"   = "Allow"
        "Action"   = ["dynamodb:BatchGetItem", "dynamodb:ConditionCheckItem", "dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query", "dynamodb:Scan", "dynamodb:UpdateItem"]
        "Resource" = aws_dynamodb_table.control_table.arn
      }],
      [{
        "Sid"      = "State"
        "Effect"   = "Allow"
        "Action"   = ["dynamodb:BatchGetItem", "dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query", "dynamodb:Scan", "dynamodb:UpdateItem"]
        "Resource" = aws_dynamodb_table.state_table.arn
      }],
      [{
        "Sid"      = "Upstreams"
        "Effect"   = "Allow"
        "Action"   = ["dynamodb:BatchGetItem", "dynamodb:DeleteItem", "dynamodb:PutItem", "dynamodb:Query", "dynamodb:Scan"]
        "Resource" = aws_dynamodb_table.upstreams_table.arn
      }],
      [{
        "Sid"      = "Audit"
        "Effect"   = "Allow"
        "Action"   = ["dynamodb:GetItem", "dynamodb:PutItem"]
        "Resource" = aws_dynamodb_table.audit_table.arn
      }],
      [{
        "Sid"      = "WriteZones"
        "Effect"   = "Allow"
        "Action"   = "route53:ChangeResourceRecordSets"
        "Resource" = var.hosted_zone_arns
        "Condition" = merge(
          {
            "ForAllValues:StringEquals" = {
              "route53:ChangeResourceRecordSetsActions"     = ["CREATE", "DELETE"]
              "route53:ChangeResourceRecordSetsRecordTypes" = ["A", "AAAA", "CNAME", "SRV", "TXT"]
            }
            "Null" = merge(
              {
                "route53:ChangeResourceRecordSetsActions"     = "false"
                "route53:ChangeResourceRecordSetsRecordTypes" = "false"
              },
              { for name, value in { "route53:ChangeResourceRecordSetsNormalizedRecordNames" = "false" } : name => value if local.has_record_names }
            )
          },
          { for name, value in { "ForAllValues:StringLike" = { "route53:ChangeResourceRecordSetsNormalizedRecordNames" = split(",", "_kubesync-${var.deployment_id}-*,${var.record_names}") } } : name => value if local.has_record_names }
        )
      }],
      [{
        "Sid"      = "Logs"
        "Effect"   = "Allow"
        "Action"   = ["logs:CreateLogStream", "logs:PutLogEvents"]
        "Resource" = "${aws_cloudwatch_log_group.watch_log_group.arn}:*"
      }],
      [{
        "Sid"      = "DeadLetters"
        "Effect"   = "Allow"
        "Action"   = "sqs:SendMessage"
        "Resource" = aws_sqs_queue.dead_letters.arn
      }],
      [for value in [{
        "Sid"      = "Subnets"
        "Effect"   = "Allow"
        "Action"   = "ec2:DescribeSubnets"
        "Resource" = "*"
      }] : value if local.has_vpc],
      [for value in [{
        "Sid"       = "NetworkInterfacesAreLambdasOwn"
        "Effect"    = "Deny"
        "Action"    = "ec2:*"
        "Resource"  = "*"
        "Condition" = { "ArnEquals" = { "lambda:SourceFunctionArn" = "arn:${data.aws_partition.this.partition}:lambda:${data.aws_region.this.name}:${data.aws_caller_identity.this.account_id}:function:kubesync-${var.deployment_id}-watch" } }
      }] : value if local.has_vpc]
    )
  })
}

resource "aws_iam_role_policy_attachment" "watch_role_0" {
  count      = local.has_vpc ? 1 : 0
  role       = aws_iam_role.watch_role.name
  policy_arn = "arn:${data.aws_partition.this.partition}:iam::aws:policy/service-role/AWSLambdaENIManagementAccess"
}

resource "aws_iam_role_policy_attachment" "watch_role_1" {
  role       = aws_iam_role.watch_role.name
  policy_arn = aws_iam_policy.read_zones_policy.arn
}

resource "aws_iam_role_policy_attachment" "watch_role_2" {
  count      = local.has_any_secrets ? 1 : 0
  role       = aws_iam_role.watch_role.name
  policy_arn = one(aws_iam_policy.secrets_policy[*].arn)
}

resource "aws_iam_role_policy_attachment" "watch_role_3" {
  count      = local.has_parameters ? 1 : 0
  role       = aws_iam_role.watch_role.name
  policy_arn = one(aws_iam_policy.parameters_policy[*].arn)
}

resource "aws_iam_role_policy_attachment" "watch_role_4" {
  count      = local.has_secret_keys ? 1 : 0
  role       = aws_iam_role.watch_role.name
  policy_arn = one(aws_iam_policy.secret_keys_policy[*].arn)
}

resource "aws_iam_role_policy_attachment" "watch_role_5" {
  count      = local.has_roles ? 1 : 0
  role       = aws_iam_role.watch_role.name
  policy_arn = one(aws_iam_policy.roles_policy[*].arn)
}

resource "aws_iam_role_policy_attachment" "watch_role_6" {
  count      = local.has_audiences ? 1 : 0
  role       = aws_iam_role.watch_role.name
  policy_arn = one(aws_iam_policy.aws_identity_policy[*].arn)
}

resource "aws_iam_role" "resync_role" {
  name_prefix = "kubesync-ResyncRole-"
  assume_role_policy = jsonencode({
    "Version" = "2012-10-17"
    "Statement" = [
      {
        "Effect"    = "Allow"
        "Principal" = { "Service" = "lambda.amazonaws.com" }
        "Action"    = "sts:AssumeRole"
      }
    ]
  })
}

resource "aws_iam_role_policy" "resync_role_kubesync" {
  name = "kubesync"
  role = aws_iam_role.resync_role.id
  policy = jsonencode({
    "Version" = "2012-10-17"
    "Statement" = concat(
      [{
        "Sid"      = "Control"
        "Effect"   = "Allow"
        "Action"   = ["dynamodb:BatchGetItem", "dynamodb:ConditionCheckItem", "dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query", "dynamodb:Scan", "dynamodb:UpdateItem"]
        "Resource" = aws_dynamodb_table.control_table.arn
      }],
      [{
        "Sid"      = "State"
        "Effect"   = "Allow"
        "Action"   = ["dynamodb:BatchGetItem", "dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query", "dynamodb:Scan", "dynamodb:UpdateItem"]
        "Resource" = aws_dynamodb_table.state_table.arn
      }],
      [{
        "Sid"      = "Upstreams"
        "Effect"   = "Allow"
        "Action"   = ["dynamodb:BatchGetItem", "dynamodb:DeleteItem", "dynamodb:PutItem", "dynamodb:Query", "dynamodb:Scan"]
        "Resource" = aws_dynamodb_table.upstreams_table.arn
      }],
      [{
        "Sid"      = "Audit"
        "Effect"   = "Allow"
        "Action"   = ["dynamodb:GetItem", "dynamodb:PutItem"]
        "Resource" = aws_dynamodb_table.audit_table.arn
      }],
      [{
        "Sid"      = "WriteZones"
        "Effect"   = "Allow"
        "Action"   = "route53:ChangeResourceRecordSets"
        "Resource" = var.hosted_zone_arns
        "Condition" = merge(
          {
            "ForAllValues:StringEquals" = {
              "route53:ChangeResourceRecordSetsActions"     = ["CREATE", "DELETE"]
              "route53:ChangeResourceRecordSetsRecordTypes" = ["A", "AAAA", "CNAME", "SRV", "TXT"]
            }
            "Null" = merge(
              {
                "route53:ChangeResourceRecordSetsActions"     = "false"
                "route53:ChangeResourceRecordSetsRecordTypes" = "false"
              },
              { for name, value in { "route53:ChangeResourceRecordSetsNormalizedRecordNames" = "false" } : name => value if local.has_record_names }
            )
          },
          { for name, value in { "ForAllValues:StringLike" = { "route53:ChangeResourceRecordSetsNormalizedRecordNames" = split(",", "_kubesync-${var.deployment_id}-*,${var.record_names}") } } : name => value if local.has_record_names }
        )
      }],
      [{
        "Sid"      = "Logs"
        "Effect"   = "Allow"
        "Action"   = ["logs:CreateLogStream", "logs:PutLogEvents"]
        "Resource" = "${aws_cloudwatch_log_group.resync_log_group.arn}:*"
      }],
      [{
        "Sid"      = "DeadLetters"
        "Effect"   = "Allow"
        "Action"   = "sqs:SendMessage"
        "Resource" = aws_sqs_queue.dead_letters.arn
      }],
      [for value in [{
        "Sid"      = "Subnets"
        "Effect"   = "Allow"
        "Action"   = "ec2:DescribeSubnets"
        "Resource" = "*"
      }] : value if local.has_vpc],
      [for value in [{
        "Sid"       = "NetworkInterfacesAreLambdasOwn"
        "Effect"    = "Deny"
        "Action"    = "ec2:*"
        "Resource"  = "*"
        "Condition" = { "ArnEquals" = { "lambda:SourceFunctionArn" = "arn:${data.aws_partition.this.partition}:lambda:${data.aws_region.this.name}:${data.aws_caller_identity.this.account_id}:function:kubesync-${var.deployment_id}-resync" } }
      }] : value if local.has_vpc]
    )
  })
}

resource "aws_iam_role_policy_attachment" "resync_role_0" {
  count      = local.has_vpc ? 1 : 0
  role       = aws_iam_role.resync_role.name
  policy_arn = "arn:${data.aws_partition.this.partition}:iam::aws:policy/service-role/AWSLambdaENIManagementAccess"
}

resource "aws_iam_role_policy_attachment" "resync_role_1" {
  role       = aws_iam_role.resync_role.name
  policy_arn = aws_iam_policy.read_zones_policy.arn
}

resource "aws_iam_role_policy_attachment" "resync_role_2" {
  count      = local.has_any_secrets ? 1 : 0
  role       = aws_iam_role.resync_role.name
  policy_arn = one(aws_iam_policy.secrets_policy[*].arn)
}

resource "aws_iam_role_policy_attachment" "resync_role_3" {
  count      = local.has_parameters ? 1 : 0
  role       = aws_iam_role.resync_role.name
  policy_arn = one(aws_iam_policy.parameters_policy[*].arn)
}

resource "aws_iam_role_policy_attachment" "resync_role_4" {
  count      = local.has_secret_keys ? 1 : 0
  role       = aws_iam_role.resync_role.name
  policy_arn = one(aws_iam_policy.secret_keys_policy[*].arn)
}

resource "aws_iam_role_policy_attachment" "resync_role_5" {
  count      = local.has_roles ? 1 : 0
  role       = aws_iam_role.resync_role.name
  policy_arn = one(aws_iam_policy.roles_policy[*].arn)
}

resource "aws_iam_role_policy_attachment" "resync_role_6" {
  count      = local.has_audiences ? 1 : 0
  role       = aws_iam_role.resync_role.name
  policy_arn = one(aws_iam_policy.aws_identity_policy[*].arn)
}

resource "aws_iam_policy" "read_zones_policy" {
  name_prefix = "kubesync-ReadZonesPolicy-"
  description = "kubesync reads its hosted zones"
  policy = jsonencode({
    "Version" = "2012-10-17"
    "Statement" = [
      {
        "Sid"      = "ReadZones"
        "Effect"   = "Allow"
        "Action"   = ["route53:GetHostedZone", "route53:ListResourceRecordSets"]
        "Resource" = var.hosted_zone_arns
      }
    ]
  })
}

resource "aws_iam_policy" "secrets_policy" {
  count       = local.has_any_secrets ? 1 : 0
  name_prefix = "kubesync-SecretsPolicy-"
  description = "kubesync reads the secrets of clusters"
  policy = jsonencode({
    "Version" = "2012-10-17"
    "Statement" = concat(
      [for value in [{
        "Sid"      = "Secrets"
        "Effect"   = "Allow"
        "Action"   = "secretsmanager:GetSecretValue"
        "Resource" = var.secret_arns
      }] : value if local.has_secrets],
      [for value in [{
        "Sid"      = "SecretsByPrefix"
        "Effect"   = "Allow"
        "Action"   = "secretsmanager:GetSecretValue"
        "Resource" = "arn:${data.aws_partition.this.partition}:secretsmanager:${data.aws_region.this.name}:${data.aws_caller_identity.this.account_id}:secret:${var.secret_prefix}*"
      }] : value if local.has_secret_prefix]
    )
  })
}

resource "aws_iam_policy" "parameters_policy" {
  count       = local.has_parameters ? 1 : 0
  name_prefix = "kubesync-ParametersPolicy-"
  description = "kubesync reads the parameters of clusters"
  policy = jsonencode({
    "Version" = "2012-10-17"
    "Statement" = [
      {
        "Sid"      = "Parameters"
        "Effect"   = "Allow"
        "Action"   = "ssm:GetParameter"
        "Resource" = var.parameter_arns
      }
    ]
  })
}

resource "aws_iam_policy" "secret_keys_policy" {
  count       = local.has_secret_keys ? 1 : 0
  name_prefix = "kubesync-SecretKeysPolicy-"
  description = "kubesync decrypts secrets and parameters of clusters, and nothing else with their keys"
  policy = jsonencode({
    "Version" = "2012-10-17"
    "Statement" = [
      {
        "Sid"       = "SecretKeys"
        "Effect"    = "Allow"
        "Action"    = "kms:Decrypt"
        "Resource"  = var.secret_key_arns
        "Condition" = { "StringLike" = { "kms:ViaService" = ["secretsmanager.${data.aws_region.this.name}.amazonaws.com*", "ssm.${data.aws_region.this.name}.amazonaws.com*"] } }
      }
    ]
  })
}

resource "aws_iam_policy" "roles_policy" {
  count       = local.has_roles ? 1 : 0
  name_prefix = "kubesync-RolesPolicy-"
  description = "kubesync assumes roles of other accounts"
  policy = jsonencode({
    "Version" = "2012-10-17"
    "Statement" = [
      {
        "Sid"      = "Roles"
        "Effect"   = "Allow"
        "Action"   = "sts:AssumeRole"
        "Resource" = var.role_arns
      }
    ]
  })
}

resource "aws_iam_policy" "aws_identity_policy" {
  count       = local.has_audiences ? 1 : 0
  name_prefix = "kubesync-AwsIdentityPolicy-"
  description = "kubesync gets tokens of its AWS identity for API servers"
  policy = jsonencode({
    "Version" = "2012-10-17"
    "Statement" = [
      {
        "Sid"      = "AwsIdentity"
        "Effect"   = "Allow"
        "Action"   = "sts:GetWebIdentityToken"
        "Resource" = "*"
        "Condition" = {
          "ForAllValues:StringEquals" = { "sts:IdentityTokenAudience" = var.aws_identity_audiences }
          "Null"                      = { "sts:IdentityTokenAudience" = "false" }
          "NumericLessThanEquals"     = { "sts:DurationSeconds" = 900 }
        }
      }
    ]
  })
}

resource "aws_cloudwatch_log_group" "watch_log_group" {
  name              = "/aws/lambda/kubesync-${var.deployment_id}-watch"
  retention_in_days = var.log_retention_days
}

resource "aws_cloudwatch_log_group" "resync_log_group" {
  name              = "/aws/lambda/kubesync-${var.deployment_id}-resync"
  retention_in_days = var.log_retention_days
}

resource "aws_dynamodb_table" "control_table" {
  name                        = "kubesync-${var.deployment_id}-control"
  billing_mode                = "PAY_PER_REQUEST"
  deletion_protection_enabled = true
  hash_key                    = "pk"
  range_key                   = "sk"
  attribute {
    name = "pk"
    type = "S"
  }
  attribute {
    name = "sk"
    type = "S"
  }
  point_in_time_recovery {
    enabled = true
  }
  server_side_encryption {
    enabled = true
  }
  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_dynamodb_table" "state_table" {
  name                        = "kubesync-${var.deployment_id}-state"
  billing_mode                = "PAY_PER_REQUEST"
  deletion_protection_enabled = true
  hash_key                    = "pk"
  range_key                   = "sk"
  attribute {
    name = "pk"
    type = "S"
  }
  attribute {
    name = "sk"
    type = "S"
  }
  point_in_time_recovery {
    enabled = true
  }
  server_side_encryption {
    enabled = true
  }
  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_dynamodb_table" "upstreams_table" {
  name                        = "kubesync-${var.deployment_id}-upstreams"
  billing_mode                = "PAY_PER_REQUEST"
  deletion_protection_enabled = true
  hash_key                    = "upstream"
  range_key                   = "slice"
  attribute {
    name = "upstream"
    type = "S"
  }
  attribute {
    name = "slice"
    type = "N"
  }
  stream_enabled   = true
  stream_view_type = "NEW_AND_OLD_IMAGES"
  ttl {
    attribute_name = "expires_at"
    enabled        = true
  }
  point_in_time_recovery {
    enabled = true
  }
  server_side_encryption {
    enabled = true
  }
  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_dynamodb_table" "audit_table" {
  name                        = "kubesync-${var.deployment_id}-audit"
  billing_mode                = "PAY_PER_REQUEST"
  deletion_protection_enabled = true
  hash_key                    = "pk"
  range_key                   = "sk"
  attribute {
    name = "pk"
    type = "S"
  }
  attribute {
    name = "sk"
    type = "S"
  }
  ttl {
    attribute_name = "expires_at"
    enabled        = true
  }
  point_in_time_recovery {
    enabled = true
  }
  server_side_encryption {
    enabled = true
  }
  lifecycle {
    prevent_destroy = true
  }
}

resource "aws_cloudwatch_metric_alarm" "no_master_alarm" {
  alarm_name          = "kubesync-${var.deployment_id}-NoMaster"
  alarm_description   = "No session of kubesync stayed the master for NoMasterMinutes - kubesync watches nothing"
  namespace           = "kubesync"
  metric_name         = "MasterHeartbeat"
  statistic           = "Sum"
  period              = 60
  dimensions          = { "service" = "kubesync-${var.deployment_id}" }
  evaluation_periods  = var.no_master_minutes
  datapoints_to_alarm = var.no_master_minutes
  threshold           = 1
  comparison_operator = "LessThanThreshold"
  treat_missing_data  = "breaching"
  actions_enabled     = (local.is_scheduled ? true : false)
  alarm_actions       = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
  ok_actions          = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
}

resource "aws_cloudwatch_metric_alarm" "sessions_cut_short_alarm" {
  alarm_name          = "kubesync-${var.deployment_id}-SessionsCutShort"
  alarm_description   = "Sessions of kubesync become the master, and are ended within a minute"
  namespace           = "kubesync"
  metric_name         = "SessionsCutShort"
  statistic           = "Sum"
  period              = 60
  dimensions          = { "service" = "kubesync-${var.deployment_id}" }
  evaluation_periods  = 5
  datapoints_to_alarm = 3
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
  ok_actions          = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
}

resource "aws_cloudwatch_metric_alarm" "lag_alarm" {
  alarm_name          = "kubesync-${var.deployment_id}-Lag"
  alarm_description   = "Changes take longer than LagAlarmSeconds from event to accepted batch"
  namespace           = "kubesync"
  metric_name         = "LagP99"
  statistic           = "Maximum"
  period              = 60
  dimensions          = { "service" = "kubesync-${var.deployment_id}" }
  evaluation_periods  = 5
  datapoints_to_alarm = 3
  threshold           = var.lag_alarm_seconds
  comparison_operator = "GreaterThanThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
  ok_actions          = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
}

resource "aws_cloudwatch_metric_alarm" "denied_alarm" {
  alarm_name        = "kubesync-${var.deployment_id}-Denied"
  alarm_description = "An API server refuses the token or a request of kubesync (ERR_REQUEST_DENIED)"
  namespace         = "kubesync"
  metric_name       = "ListenerErrors"
  statistic         = "Sum"
  period            = 60
  dimensions = {
    "service" = "kubesync-${var.deployment_id}"
    "code"    = "10"
    "key"     = "ERR_REQUEST_DENIED"
  }
  evaluation_periods  = 5
  datapoints_to_alarm = 2
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
  ok_actions          = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
}

resource "aws_cloudwatch_metric_alarm" "tls_alarm" {
  alarm_name        = "kubesync-${var.deployment_id}-Tls"
  alarm_description = "The certificate of an API server is not trusted, has another name or has expired (ERR_SSL_HANDSHAKE)"
  namespace         = "kubesync"
  metric_name       = "ListenerErrors"
  statistic         = "Sum"
  period            = 60
  dimensions = {
    "service" = "kubesync-${var.deployment_id}"
    "code"    = "8"
    "key"     = "ERR_SSL_HANDSHAKE"
  }
  evaluation_periods  = 5
  datapoints_to_alarm = 2
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
  ok_actions          = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
}

resource "aws_cloudwatch_metric_alarm" "zone_blocked_alarm" {
  alarm_name          = "kubesync-${var.deployment_id}-ZoneBlocked"
  alarm_description   = "kubesync cannot write to a hosted zone - access is denied, the zone is gone, or its journal is not ours"
  namespace           = "kubesync"
  metric_name         = "ZonesBlocked"
  statistic           = "Maximum"
  period              = 60
  dimensions          = { "service" = "kubesync-${var.deployment_id}" }
  evaluation_periods  = 3
  datapoints_to_alarm = 2
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
  ok_actions          = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
}

resource "aws_cloudwatch_metric_alarm" "changes_late_alarm" {
  alarm_name          = "kubesync-${var.deployment_id}-ChangesLate"
  alarm_description   = "A change has waited for more than three minutes - it should get through by itself"
  namespace           = "kubesync"
  metric_name         = "OldestOpenSeconds"
  statistic           = "Maximum"
  period              = 60
  dimensions          = { "service" = "kubesync-${var.deployment_id}" }
  evaluation_periods  = 1
  datapoints_to_alarm = 1
  threshold           = 180
  comparison_operator = "GreaterThanThreshold"
  treat_missing_data  = "ignore"
  alarm_actions       = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
  ok_actions          = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
}

resource "aws_cloudwatch_metric_alarm" "turns_late_alarm" {
  alarm_name          = "kubesync-${var.deployment_id}-TurnsLate"
  alarm_description   = "In three of five minutes, a change of some namespace has waited for more than a minute to be recorded"
  namespace           = "kubesync"
  metric_name         = "TurnWaitSeconds"
  statistic           = "Maximum"
  period              = 60
  dimensions          = { "service" = "kubesync-${var.deployment_id}" }
  evaluation_periods  = 5
  datapoints_to_alarm = 3
  threshold           = 60
  comparison_operator = "GreaterThanThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
  ok_actions          = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
}

resource "aws_cloudwatch_metric_alarm" "backlog_alarm" {
  alarm_name          = "kubesync-${var.deployment_id}-Backlog"
  alarm_description   = "More than a thousand changes wait at the same time for five minutes"
  namespace           = "kubesync"
  metric_name         = "OpenKeys"
  statistic           = "Minimum"
  period              = 60
  dimensions          = { "service" = "kubesync-${var.deployment_id}" }
  evaluation_periods  = 5
  datapoints_to_alarm = 5
  threshold           = 1000
  comparison_operator = "GreaterThanThreshold"
  treat_missing_data  = "ignore"
  alarm_actions       = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
  ok_actions          = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
}

resource "aws_cloudwatch_metric_alarm" "listeners_failing_alarm" {
  alarm_name          = "kubesync-${var.deployment_id}-ListenersFailing"
  alarm_description   = "kubesync has not been able to watch a cluster for three minutes, whatever the cause"
  namespace           = "kubesync"
  metric_name         = "ListenersFailing"
  statistic           = "Maximum"
  period              = 60
  dimensions          = { "service" = "kubesync-${var.deployment_id}" }
  evaluation_periods  = 1
  datapoints_to_alarm = 1
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "ignore"
  alarm_actions       = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
  ok_actions          = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
}

resource "aws_cloudwatch_metric_alarm" "zones_stuck_alarm" {
  alarm_name          = "kubesync-${var.deployment_id}-ZonesStuck"
  alarm_description   = "Nothing has got through to a hosted zone for three minutes, although something waits"
  namespace           = "kubesync"
  metric_name         = "ZonesStuck"
  statistic           = "Maximum"
  period              = 60
  dimensions          = { "service" = "kubesync-${var.deployment_id}" }
  evaluation_periods  = 1
  datapoints_to_alarm = 1
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "ignore"
  alarm_actions       = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
  ok_actions          = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
}

resource "aws_cloudwatch_metric_alarm" "held_deletions_alarm" {
  alarm_name          = "kubesync-${var.deployment_id}-HeldDeletions"
  alarm_description   = "kubesync holds deletions back - a list lacks many objects, or another cluster answers"
  namespace           = "kubesync"
  metric_name         = "HeldDeletions"
  statistic           = "Maximum"
  period              = 60
  dimensions          = { "service" = "kubesync-${var.deployment_id}" }
  evaluation_periods  = 1
  datapoints_to_alarm = 1
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "ignore"
  alarm_actions       = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
  ok_actions          = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
}

resource "aws_cloudwatch_metric_alarm" "inferred_deletions_alarm" {
  alarm_name          = "kubesync-${var.deployment_id}-InferredDeletions"
  alarm_description   = "Within an hour 10 objects went because lists lacked them, and no event told their deletion"
  namespace           = "kubesync"
  metric_name         = "InferredDeletions"
  statistic           = "Maximum"
  period              = 60
  dimensions          = { "service" = "kubesync-${var.deployment_id}" }
  evaluation_periods  = 1
  datapoints_to_alarm = 1
  threshold           = 10
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
  ok_actions          = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
}

resource "aws_cloudwatch_metric_alarm" "deletions_alarm" {
  alarm_name          = "kubesync-${var.deployment_id}-Deletions"
  alarm_description   = "Within 15 minutes kubesync has deleted as many record sets as DeletionsAlarmRecordSets, for whatever reason"
  namespace           = "kubesync"
  metric_name         = "RecordSetsDeleted"
  statistic           = "Sum"
  period              = 900
  dimensions          = { "service" = "kubesync-${var.deployment_id}" }
  evaluation_periods  = 1
  datapoints_to_alarm = 1
  threshold           = var.deletions_alarm_record_sets
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
  ok_actions          = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
}

resource "aws_cloudwatch_metric_alarm" "keys_set_aside_alarm" {
  alarm_name          = "kubesync-${var.deployment_id}-KeysSetAside"
  alarm_description   = "kubesync sets a Service aside - sessions died while they planned its endpoints"
  namespace           = "kubesync"
  metric_name         = "KeysSetAside"
  statistic           = "Maximum"
  period              = 60
  dimensions          = { "service" = "kubesync-${var.deployment_id}" }
  evaluation_periods  = 1
  datapoints_to_alarm = 1
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "ignore"
  alarm_actions       = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
  ok_actions          = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
}

resource "aws_cloudwatch_metric_alarm" "resync_failed_alarm" {
  alarm_name          = "kubesync-${var.deployment_id}-ResyncFailed"
  alarm_description   = "The last full resync could not compare and correct every cluster"
  namespace           = "kubesync"
  metric_name         = "ResyncErrors"
  statistic           = "Maximum"
  period              = 60
  dimensions          = { "service" = "kubesync-${var.deployment_id}" }
  evaluation_periods  = 1
  datapoints_to_alarm = 1
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "ignore"
  alarm_actions       = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
  ok_actions          = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
}

resource "aws_cloudwatch_metric_alarm" "resync_overdue_alarm" {
  count               = local.has_resync_schedule ? 1 : 0
  alarm_name          = "kubesync-${var.deployment_id}-ResyncOverdue"
  alarm_description   = "No full resync has compared and corrected everything for ResyncOverdueHours"
  namespace           = "kubesync"
  metric_name         = "HoursSinceResync"
  statistic           = "Maximum"
  period              = 60
  dimensions          = { "service" = "kubesync-${var.deployment_id}" }
  evaluation_periods  = 1
  datapoints_to_alarm = 1
  threshold           = var.resync_overdue_hours
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "ignore"
  alarm_actions       = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
  ok_actions          = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
}

resource "aws_cloudwatch_metric_alarm" "resync_differences_alarm" {
  alarm_name          = "kubesync-${var.deployment_id}-ResyncDifferences"
  alarm_description   = "The last scheduled full resync found differences that no watch had told"
  namespace           = "kubesync"
  metric_name         = "ResyncDifferences"
  statistic           = "Maximum"
  period              = 60
  dimensions          = { "service" = "kubesync-${var.deployment_id}" }
  evaluation_periods  = 1
  datapoints_to_alarm = 1
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "ignore"
  alarm_actions       = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
  ok_actions          = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
}

resource "aws_cloudwatch_metric_alarm" "registrations_lost_alarm" {
  alarm_name          = "kubesync-${var.deployment_id}-RegistrationsLost"
  alarm_description   = "Clusters are not registered any more, although nobody has removed them"
  namespace           = "kubesync"
  metric_name         = "RegistrationsLost"
  statistic           = "Maximum"
  period              = 60
  dimensions          = { "service" = "kubesync-${var.deployment_id}" }
  evaluation_periods  = 1
  datapoints_to_alarm = 1
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "ignore"
  alarm_actions       = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
  ok_actions          = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
}

resource "aws_cloudwatch_metric_alarm" "named_upstreams_alarm" {
  alarm_name          = "kubesync-${var.deployment_id}-NamedUpstreams"
  alarm_description   = "kubesync cannot compose named upstreams - proxies that read them use the old nodes"
  namespace           = "kubesync"
  metric_name         = "NamedUpstreamsStuck"
  statistic           = "Maximum"
  period              = 60
  dimensions          = { "service" = "kubesync-${var.deployment_id}" }
  evaluation_periods  = 5
  datapoints_to_alarm = 3
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
  ok_actions          = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
}

resource "aws_cloudwatch_metric_alarm" "credentials_end_alarm" {
  alarm_name          = "kubesync-${var.deployment_id}-CredentialsEnd"
  alarm_description   = "A certificate or token of a cluster's connection ends within 14 days, or has ended"
  namespace           = "kubesync"
  metric_name         = "CredentialDaysLeft"
  statistic           = "Minimum"
  period              = 900
  dimensions          = { "service" = "kubesync-${var.deployment_id}" }
  evaluation_periods  = 1
  datapoints_to_alarm = 1
  threshold           = 14
  comparison_operator = "LessThanThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
  ok_actions          = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
}

resource "aws_cloudwatch_metric_alarm" "dead_letters_alarm" {
  alarm_name          = "kubesync-${var.deployment_id}-DeadLetters"
  alarm_description   = "An event was not delivered, or an invocation failed"
  namespace           = "AWS/SQS"
  metric_name         = "ApproximateNumberOfMessagesVisible"
  statistic           = "Maximum"
  period              = 60
  dimensions          = { "QueueName" = aws_sqs_queue.dead_letters.name }
  evaluation_periods  = 1
  datapoints_to_alarm = 1
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
  ok_actions          = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
}

resource "aws_cloudwatch_metric_alarm" "session_failed_alarm" {
  alarm_name          = "kubesync-${var.deployment_id}-SessionFailed"
  alarm_description   = "Sessions of kubesync end with an error or in Lambda's timeout"
  namespace           = "AWS/Lambda"
  metric_name         = "Errors"
  statistic           = "Sum"
  period              = 60
  dimensions          = { "FunctionName" = aws_lambda_function.watch_function.function_name }
  evaluation_periods  = 5
  datapoints_to_alarm = 2
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  treat_missing_data  = "notBreaching"
  alarm_actions       = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
  ok_actions          = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
}

resource "aws_scheduler_schedule" "watch_schedule_shard1" {
  count               = local.has_shard1 ? 1 : 0
  name                = "kubesync-${var.deployment_id}-watch-shard1"
  description         = "Starts a session of kubesync for shard 1"
  schedule_expression = var.schedule
  state               = var.schedule_state
  flexible_time_window {
    mode = "OFF"
  }
  target {
    arn      = aws_lambda_function.watch_function.arn
    role_arn = aws_iam_role.scheduler_role.arn
    input    = "{\"shard\": \"1\"}"
    retry_policy {
      maximum_retry_attempts       = 0
      maximum_event_age_in_seconds = 60
    }
    dead_letter_config {
      arn = aws_sqs_queue.dead_letters.arn
    }
  }
}

resource "aws_scheduler_schedule" "resync_every_shard1" {
  count               = local.resyncs_shard1 ? 1 : 0
  name                = "kubesync-${var.deployment_id}-resync-shard1"
  description         = "Starts a full resync of kubesync for shard 1"
  schedule_expression = var.resync_schedule
  state               = var.schedule_state
  flexible_time_window {
    mode = "OFF"
  }
  target {
    arn      = aws_lambda_function.resync_function.arn
    role_arn = aws_iam_role.scheduler_role.arn
    input    = "{\"dry_run\": false, \"force\": false, \"scheduled\": true, \"shard\": \"1\"}"
    retry_policy {
      maximum_retry_attempts       = 0
      maximum_event_age_in_seconds = 60
    }
    dead_letter_config {
      arn = aws_sqs_queue.dead_letters.arn
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "no_master_shard1_alarm" {
  count             = local.has_shard1 ? 1 : 0
  alarm_name        = "kubesync-${var.deployment_id}-NoMaster-shard1"
  alarm_description = "No session of shard 1 stayed the master for NoMasterMinutes - kubesync watches none of its clusters"
  namespace         = "kubesync"
  metric_name       = "MasterHeartbeat"
  statistic         = "Sum"
  period            = 60
  dimensions = {
    "service" = "kubesync-${var.deployment_id}"
    "shard"   = "1"
  }
  evaluation_periods  = var.no_master_minutes
  datapoints_to_alarm = var.no_master_minutes
  threshold           = 1
  comparison_operator = "LessThanThreshold"
  treat_missing_data  = "breaching"
  actions_enabled     = (local.is_scheduled ? true : false)
  alarm_actions       = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
  ok_actions          = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
}

resource "aws_scheduler_schedule" "watch_schedule_shard2" {
  count               = local.has_shard2 ? 1 : 0
  name                = "kubesync-${var.deployment_id}-watch-shard2"
  description         = "Starts a session of kubesync for shard 2"
  schedule_expression = var.schedule
  state               = var.schedule_state
  flexible_time_window {
    mode = "OFF"
  }
  target {
    arn      = aws_lambda_function.watch_function.arn
    role_arn = aws_iam_role.scheduler_role.arn
    input    = "{\"shard\": \"2\"}"
    retry_policy {
      maximum_retry_attempts       = 0
      maximum_event_age_in_seconds = 60
    }
    dead_letter_config {
      arn = aws_sqs_queue.dead_letters.arn
    }
  }
}

resource "aws_scheduler_schedule" "resync_every_shard2" {
  count               = local.resyncs_shard2 ? 1 : 0
  name                = "kubesync-${var.deployment_id}-resync-shard2"
  description         = "Starts a full resync of kubesync for shard 2"
  schedule_expression = var.resync_schedule
  state               = var.schedule_state
  flexible_time_window {
    mode = "OFF"
  }
  target {
    arn      = aws_lambda_function.resync_function.arn
    role_arn = aws_iam_role.scheduler_role.arn
    input    = "{\"dry_run\": false, \"force\": false, \"scheduled\": true, \"shard\": \"2\"}"
    retry_policy {
      maximum_retry_attempts       = 0
      maximum_event_age_in_seconds = 60
    }
    dead_letter_config {
      arn = aws_sqs_queue.dead_letters.arn
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "no_master_shard2_alarm" {
  count             = local.has_shard2 ? 1 : 0
  alarm_name        = "kubesync-${var.deployment_id}-NoMaster-shard2"
  alarm_description = "No session of shard 2 stayed the master for NoMasterMinutes - kubesync watches none of its clusters"
  namespace         = "kubesync"
  metric_name       = "MasterHeartbeat"
  statistic         = "Sum"
  period            = 60
  dimensions = {
    "service" = "kubesync-${var.deployment_id}"
    "shard"   = "2"
  }
  evaluation_periods  = var.no_master_minutes
  datapoints_to_alarm = var.no_master_minutes
  threshold           = 1
  comparison_operator = "LessThanThreshold"
  treat_missing_data  = "breaching"
  actions_enabled     = (local.is_scheduled ? true : false)
  alarm_actions       = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
  ok_actions          = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
}

resource "aws_scheduler_schedule" "watch_schedule_shard3" {
  count               = local.has_shard3 ? 1 : 0
  name                = "kubesync-${var.deployment_id}-watch-shard3"
  description         = "Starts a session of kubesync for shard 3"
  schedule_expression = var.schedule
  state               = var.schedule_state
  flexible_time_window {
    mode = "OFF"
  }
  target {
    arn      = aws_lambda_function.watch_function.arn
    role_arn = aws_iam_role.scheduler_role.arn
    input    = "{\"shard\": \"3\"}"
    retry_policy {
      maximum_retry_attempts       = 0
      maximum_event_age_in_seconds = 60
    }
    dead_letter_config {
      arn = aws_sqs_queue.dead_letters.arn
    }
  }
}

resource "aws_scheduler_schedule" "resync_every_shard3" {
  count               = local.resyncs_shard3 ? 1 : 0
  name                = "kubesync-${var.deployment_id}-resync-shard3"
  description         = "Starts a full resync of kubesync for shard 3"
  schedule_expression = var.resync_schedule
  state               = var.schedule_state
  flexible_time_window {
    mode = "OFF"
  }
  target {
    arn      = aws_lambda_function.resync_function.arn
    role_arn = aws_iam_role.scheduler_role.arn
    input    = "{\"dry_run\": false, \"force\": false, \"scheduled\": true, \"shard\": \"3\"}"
    retry_policy {
      maximum_retry_attempts       = 0
      maximum_event_age_in_seconds = 60
    }
    dead_letter_config {
      arn = aws_sqs_queue.dead_letters.arn
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "no_master_shard3_alarm" {
  count             = local.has_shard3 ? 1 : 0
  alarm_name        = "kubesync-${var.deployment_id}-NoMaster-shard3"
  alarm_description = "No session of shard 3 stayed the master for NoMasterMinutes - kubesync watches none of its clusters"
  namespace         = "kubesync"
  metric_name       = "MasterHeartbeat"
  statistic         = "Sum"
  period            = 60
  dimensions = {
    "service" = "kubesync-${var.deployment_id}"
    "shard"   = "3"
  }
  evaluation_periods  = var.no_master_minutes
  datapoints_to_alarm = var.no_master_minutes
  threshold           = 1
  comparison_operator = "LessThanThreshold"
  treat_missing_data  = "breaching"
  actions_enabled     = (local.is_scheduled ? true : false)
  alarm_actions       = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
  ok_actions          = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
}

resource "aws_scheduler_schedule" "watch_schedule_shard4" {
  count               = local.has_shard4 ? 1 : 0
  name                = "kubesync-${var.deployment_id}-watch-shard4"
  description         = "Starts a session of kubesync for shard 4"
  schedule_expression = var.schedule
  state               = var.schedule_state
  flexible_time_window {
    mode = "OFF"
  }
  target {
    arn      = aws_lambda_function.watch_function.arn
    role_arn = aws_iam_role.scheduler_role.arn
    input    = "{\"shard\": \"4\"}"
    retry_policy {
      maximum_retry_attempts       = 0
      maximum_event_age_in_seconds = 60
    }
    dead_letter_config {
      arn = aws_sqs_queue.dead_letters.arn
    }
  }
}

resource "aws_scheduler_schedule" "resync_every_shard4" {
  count               = local.resyncs_shard4 ? 1 : 0
  name                = "kubesync-${var.deployment_id}-resync-shard4"
  description         = "Starts a full resync of kubesync for shard 4"
  schedule_expression = var.resync_schedule
  state               = var.schedule_state
  flexible_time_window {
    mode = "OFF"
  }
  target {
    arn      = aws_lambda_function.resync_function.arn
    role_arn = aws_iam_role.scheduler_role.arn
    input    = "{\"dry_run\": false, \"force\": false, \"scheduled\": true, \"shard\": \"4\"}"
    retry_policy {
      maximum_retry_attempts       = 0
      maximum_event_age_in_seconds = 60
    }
    dead_letter_config {
      arn = aws_sqs_queue.dead_letters.arn
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "no_master_shard4_alarm" {
  count             = local.has_shard4 ? 1 : 0
  alarm_name        = "kubesync-${var.deployment_id}-NoMaster-shard4"
  alarm_description = "No session of shard 4 stayed the master for NoMasterMinutes - kubesync watches none of its clusters"
  namespace         = "kubesync"
  metric_name       = "MasterHeartbeat"
  statistic         = "Sum"
  period            = 60
  dimensions = {
    "service" = "kubesync-${var.deployment_id}"
    "shard"   = "4"
  }
  evaluation_periods  = var.no_master_minutes
  datapoints_to_alarm = var.no_master_minutes
  threshold           = 1
  comparison_operator = "LessThanThreshold"
  treat_missing_data  = "breaching"
  actions_enabled     = (local.is_scheduled ? true : false)
  alarm_actions       = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
  ok_actions          = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
}

resource "aws_scheduler_schedule" "watch_schedule_shard5" {
  count               = local.has_shard5 ? 1 : 0
  name                = "kubesync-${var.deployment_id}-watch-shard5"
  description         = "Starts a session of kubesync for shard 5"
  schedule_expression = var.schedule
  state               = var.schedule_state
  flexible_time_window {
    mode = "OFF"
  }
  target {
    arn      = aws_lambda_function.watch_function.arn
    role_arn = aws_iam_role.scheduler_role.arn
    input    = "{\"shard\": \"5\"}"
    retry_policy {
      maximum_retry_attempts       = 0
      maximum_event_age_in_seconds = 60
    }
    dead_letter_config {
      arn = aws_sqs_queue.dead_letters.arn
    }
  }
}

resource "aws_scheduler_schedule" "resync_every_shard5" {
  count               = local.resyncs_shard5 ? 1 : 0
  name                = "kubesync-${var.deployment_id}-resync-shard5"
  description         = "Starts a full resync of kubesync for shard 5"
  schedule_expression = var.resync_schedule
  state               = var.schedule_state
  flexible_time_window {
    mode = "OFF"
  }
  target {
    arn      = aws_lambda_function.resync_function.arn
    role_arn = aws_iam_role.scheduler_role.arn
    input    = "{\"dry_run\": false, \"force\": false, \"scheduled\": true, \"shard\": \"5\"}"
    retry_policy {
      maximum_retry_attempts       = 0
      maximum_event_age_in_seconds = 60
    }
    dead_letter_config {
      arn = aws_sqs_queue.dead_letters.arn
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "no_master_shard5_alarm" {
  count             = local.has_shard5 ? 1 : 0
  alarm_name        = "kubesync-${var.deployment_id}-NoMaster-shard5"
  alarm_description = "No session of shard 5 stayed the master for NoMasterMinutes - kubesync watches none of its clusters"
  namespace         = "kubesync"
  metric_name       = "MasterHeartbeat"
  statistic         = "Sum"
  period            = 60
  dimensions = {
    "service" = "kubesync-${var.deployment_id}"
    "shard"   = "5"
  }
  evaluation_periods  = var.no_master_minutes
  datapoints_to_alarm = var.no_master_minutes
  threshold           = 1
  comparison_operator = "LessThanThreshold"
  treat_missing_data  = "breaching"
  actions_enabled     = (local.is_scheduled ? true : false)
  alarm_actions       = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
  ok_actions          = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
}

resource "aws_scheduler_schedule" "watch_schedule_shard6" {
  count               = local.has_shard6 ? 1 : 0
  name                = "kubesync-${var.deployment_id}-watch-shard6"
  description         = "Starts a session of kubesync for shard 6"
  schedule_expression = var.schedule
  state               = var.schedule_state
  flexible_time_window {
    mode = "OFF"
  }
  target {
    arn      = aws_lambda_function.watch_function.arn
    role_arn = aws_iam_role.scheduler_role.arn
    input    = "{\"shard\": \"6\"}"
    retry_policy {
      maximum_retry_attempts       = 0
      maximum_event_age_in_seconds = 60
    }
    dead_letter_config {
      arn = aws_sqs_queue.dead_letters.arn
    }
  }
}

resource "aws_scheduler_schedule" "resync_every_shard6" {
  count               = local.resyncs_shard6 ? 1 : 0
  name                = "kubesync-${var.deployment_id}-resync-shard6"
  description         = "Starts a full resync of kubesync for shard 6"
  schedule_expression = var.resync_schedule
  state               = var.schedule_state
  flexible_time_window {
    mode = "OFF"
  }
  target {
    arn      = aws_lambda_function.resync_function.arn
    role_arn = aws_iam_role.scheduler_role.arn
    input    = "{\"dry_run\": false, \"force\": false, \"scheduled\": true, \"shard\": \"6\"}"
    retry_policy {
      maximum_retry_attempts       = 0
      maximum_event_age_in_seconds = 60
    }
    dead_letter_config {
      arn = aws_sqs_queue.dead_letters.arn
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "no_master_shard6_alarm" {
  count             = local.has_shard6 ? 1 : 0
  alarm_name        = "kubesync-${var.deployment_id}-NoMaster-shard6"
  alarm_description = "No session of shard 6 stayed the master for NoMasterMinutes - kubesync watches none of its clusters"
  namespace         = "kubesync"
  metric_name       = "MasterHeartbeat"
  statistic         = "Sum"
  period            = 60
  dimensions = {
    "service" = "kubesync-${var.deployment_id}"
    "shard"   = "6"
  }
  evaluation_periods  = var.no_master_minutes
  datapoints_to_alarm = var.no_master_minutes
  threshold           = 1
  comparison_operator = "LessThanThreshold"
  treat_missing_data  = "breaching"
  actions_enabled     = (local.is_scheduled ? true : false)
  alarm_actions       = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
  ok_actions          = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
}

resource "aws_scheduler_schedule" "watch_schedule_shard7" {
  count               = local.has_shard7 ? 1 : 0
  name                = "kubesync-${var.deployment_id}-watch-shard7"
  description         = "Starts a session of kubesync for shard 7"
  schedule_expression = var.schedule
  state               = var.schedule_state
  flexible_time_window {
    mode = "OFF"
  }
  target {
    arn      = aws_lambda_function.watch_function.arn
    role_arn = aws_iam_role.scheduler_role.arn
    input    = "{\"shard\": \"7\"}"
    retry_policy {
      maximum_retry_attempts       = 0
      maximum_event_age_in_seconds = 60
    }
    dead_letter_config {
      arn = aws_sqs_queue.dead_letters.arn
    }
  }
}

resource "aws_scheduler_schedule" "resync_every_shard7" {
  count               = local.resyncs_shard7 ? 1 : 0
  name                = "kubesync-${var.deployment_id}-resync-shard7"
  description         = "Starts a full resync of kubesync for shard 7"
  schedule_expression = var.resync_schedule
  state               = var.schedule_state
  flexible_time_window {
    mode = "OFF"
  }
  target {
    arn      = aws_lambda_function.resync_function.arn
    role_arn = aws_iam_role.scheduler_role.arn
    input    = "{\"dry_run\": false, \"force\": false, \"scheduled\": true, \"shard\": \"7\"}"
    retry_policy {
      maximum_retry_attempts       = 0
      maximum_event_age_in_seconds = 60
    }
    dead_letter_config {
      arn = aws_sqs_queue.dead_letters.arn
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "no_master_shard7_alarm" {
  count             = local.has_shard7 ? 1 : 0
  alarm_name        = "kubesync-${var.deployment_id}-NoMaster-shard7"
  alarm_description = "No session of shard 7 stayed the master for NoMasterMinutes - kubesync watches none of its clusters"
  namespace         = "kubesync"
  metric_name       = "MasterHeartbeat"
  statistic         = "Sum"
  period            = 60
  dimensions = {
    "service" = "kubesync-${var.deployment_id}"
    "shard"   = "7"
  }
  evaluation_periods  = var.no_master_minutes
  datapoints_to_alarm = var.no_master_minutes
  threshold           = 1
  comparison_operator = "LessThanThreshold"
  treat_missing_data  = "breaching"
  actions_enabled     = (local.is_scheduled ? true : false)
  alarm_actions       = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
  ok_actions          = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
}

resource "aws_scheduler_schedule" "watch_schedule_shard8" {
  count               = local.has_shard8 ? 1 : 0
  name                = "kubesync-${var.deployment_id}-watch-shard8"
  description         = "Starts a session of kubesync for shard 8"
  schedule_expression = var.schedule
  state               = var.schedule_state
  flexible_time_window {
    mode = "OFF"
  }
  target {
    arn      = aws_lambda_function.watch_function.arn
    role_arn = aws_iam_role.scheduler_role.arn
    input    = "{\"shard\": \"8\"}"
    retry_policy {
      maximum_retry_attempts       = 0
      maximum_event_age_in_seconds = 60
    }
    dead_letter_config {
      arn = aws_sqs_queue.dead_letters.arn
    }
  }
}

resource "aws_scheduler_schedule" "resync_every_shard8" {
  count               = local.resyncs_shard8 ? 1 : 0
  name                = "kubesync-${var.deployment_id}-resync-shard8"
  description         = "Starts a full resync of kubesync for shard 8"
  schedule_expression = var.resync_schedule
  state               = var.schedule_state
  flexible_time_window {
    mode = "OFF"
  }
  target {
    arn      = aws_lambda_function.resync_function.arn
    role_arn = aws_iam_role.scheduler_role.arn
    input    = "{\"dry_run\": false, \"force\": false, \"scheduled\": true, \"shard\": \"8\"}"
    retry_policy {
      maximum_retry_attempts       = 0
      maximum_event_age_in_seconds = 60
    }
    dead_letter_config {
      arn = aws_sqs_queue.dead_letters.arn
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "no_master_shard8_alarm" {
  count             = local.has_shard8 ? 1 : 0
  alarm_name        = "kubesync-${var.deployment_id}-NoMaster-shard8"
  alarm_description = "No session of shard 8 stayed the master for NoMasterMinutes - kubesync watches none of its clusters"
  namespace         = "kubesync"
  metric_name       = "MasterHeartbeat"
  statistic         = "Sum"
  period            = 60
  dimensions = {
    "service" = "kubesync-${var.deployment_id}"
    "shard"   = "8"
  }
  evaluation_periods  = var.no_master_minutes
  datapoints_to_alarm = var.no_master_minutes
  threshold           = 1
  comparison_operator = "LessThanThreshold"
  treat_missing_data  = "breaching"
  actions_enabled     = (local.is_scheduled ? true : false)
  alarm_actions       = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
  ok_actions          = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
}

resource "aws_scheduler_schedule" "watch_schedule_shard9" {
  count               = local.has_shard9 ? 1 : 0
  name                = "kubesync-${var.deployment_id}-watch-shard9"
  description         = "Starts a session of kubesync for shard 9"
  schedule_expression = var.schedule
  state               = var.schedule_state
  flexible_time_window {
    mode = "OFF"
  }
  target {
    arn      = aws_lambda_function.watch_function.arn
    role_arn = aws_iam_role.scheduler_role.arn
    input    = "{\"shard\": \"9\"}"
    retry_policy {
      maximum_retry_attempts       = 0
      maximum_event_age_in_seconds = 60
    }
    dead_letter_config {
      arn = aws_sqs_queue.dead_letters.arn
    }
  }
}

resource "aws_scheduler_schedule" "resync_every_shard9" {
  count               = local.resyncs_shard9 ? 1 : 0
  name                = "kubesync-${var.deployment_id}-resync-shard9"
  description         = "Starts a full resync of kubesync for shard 9"
  schedule_expression = var.resync_schedule
  state               = var.schedule_state
  flexible_time_window {
    mode = "OFF"
  }
  target {
    arn      = aws_lambda_function.resync_function.arn
    role_arn = aws_iam_role.scheduler_role.arn
    input    = "{\"dry_run\": false, \"force\": false, \"scheduled\": true, \"shard\": \"9\"}"
    retry_policy {
      maximum_retry_attempts       = 0
      maximum_event_age_in_seconds = 60
    }
    dead_letter_config {
      arn = aws_sqs_queue.dead_letters.arn
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "no_master_shard9_alarm" {
  count             = local.has_shard9 ? 1 : 0
  alarm_name        = "kubesync-${var.deployment_id}-NoMaster-shard9"
  alarm_description = "No session of shard 9 stayed the master for NoMasterMinutes - kubesync watches none of its clusters"
  namespace         = "kubesync"
  metric_name       = "MasterHeartbeat"
  statistic         = "Sum"
  period            = 60
  dimensions = {
    "service" = "kubesync-${var.deployment_id}"
    "shard"   = "9"
  }
  evaluation_periods  = var.no_master_minutes
  datapoints_to_alarm = var.no_master_minutes
  threshold           = 1
  comparison_operator = "LessThanThreshold"
  treat_missing_data  = "breaching"
  actions_enabled     = (local.is_scheduled ? true : false)
  alarm_actions       = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
  ok_actions          = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
}

resource "aws_scheduler_schedule" "watch_schedule_shard10" {
  count               = local.has_shard10 ? 1 : 0
  name                = "kubesync-${var.deployment_id}-watch-shard10"
  description         = "Starts a session of kubesync for shard 10"
  schedule_expression = var.schedule
  state               = var.schedule_state
  flexible_time_window {
    mode = "OFF"
  }
  target {
    arn      = aws_lambda_function.watch_function.arn
    role_arn = aws_iam_role.scheduler_role.arn
    input    = "{\"shard\": \"10\"}"
    retry_policy {
      maximum_retry_attempts       = 0
      maximum_event_age_in_seconds = 60
    }
    dead_letter_config {
      arn = aws_sqs_queue.dead_letters.arn
    }
  }
}

resource "aws_scheduler_schedule" "resync_every_shard10" {
  count               = local.resyncs_shard10 ? 1 : 0
  name                = "kubesync-${var.deployment_id}-resync-shard10"
  description         = "Starts a full resync of kubesync for shard 10"
  schedule_expression = var.resync_schedule
  state               = var.schedule_state
  flexible_time_window {
    mode = "OFF"
  }
  target {
    arn      = aws_lambda_function.resync_function.arn
    role_arn = aws_iam_role.scheduler_role.arn
    input    = "{\"dry_run\": false, \"force\": false, \"scheduled\": true, \"shard\": \"10\"}"
    retry_policy {
      maximum_retry_attempts       = 0
      maximum_event_age_in_seconds = 60
    }
    dead_letter_config {
      arn = aws_sqs_queue.dead_letters.arn
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "no_master_shard10_alarm" {
  count             = local.has_shard10 ? 1 : 0
  alarm_name        = "kubesync-${var.deployment_id}-NoMaster-shard10"
  alarm_description = "No session of shard 10 stayed the master for NoMasterMinutes - kubesync watches none of its clusters"
  namespace         = "kubesync"
  metric_name       = "MasterHeartbeat"
  statistic         = "Sum"
  period            = 60
  dimensions = {
    "service" = "kubesync-${var.deployment_id}"
    "shard"   = "10"
  }
  evaluation_periods  = var.no_master_minutes
  datapoints_to_alarm = var.no_master_minutes
  threshold           = 1
  comparison_operator = "LessThanThreshold"
  treat_missing_data  = "breaching"
  actions_enabled     = (local.is_scheduled ? true : false)
  alarm_actions       = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
  ok_actions          = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
}

resource "aws_scheduler_schedule" "watch_schedule_shard11" {
  count               = local.has_shard11 ? 1 : 0
  name                = "kubesync-${var.deployment_id}-watch-shard11"
  description         = "Starts a session of kubesync for shard 11"
  schedule_expression = var.schedule
  state               = var.schedule_state
  flexible_time_window {
    mode = "OFF"
  }
  target {
    arn      = aws_lambda_function.watch_function.arn
    role_arn = aws_iam_role.scheduler_role.arn
    input    = "{\"shard\": \"11\"}"
    retry_policy {
      maximum_retry_attempts       = 0
      maximum_event_age_in_seconds = 60
    }
    dead_letter_config {
      arn = aws_sqs_queue.dead_letters.arn
    }
  }
}

resource "aws_scheduler_schedule" "resync_every_shard11" {
  count               = local.resyncs_shard11 ? 1 : 0
  name                = "kubesync-${var.deployment_id}-resync-shard11"
  description         = "Starts a full resync of kubesync for shard 11"
  schedule_expression = var.resync_schedule
  state               = var.schedule_state
  flexible_time_window {
    mode = "OFF"
  }
  target {
    arn      = aws_lambda_function.resync_function.arn
    role_arn = aws_iam_role.scheduler_role.arn
    input    = "{\"dry_run\": false, \"force\": false, \"scheduled\": true, \"shard\": \"11\"}"
    retry_policy {
      maximum_retry_attempts       = 0
      maximum_event_age_in_seconds = 60
    }
    dead_letter_config {
      arn = aws_sqs_queue.dead_letters.arn
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "no_master_shard11_alarm" {
  count             = local.has_shard11 ? 1 : 0
  alarm_name        = "kubesync-${var.deployment_id}-NoMaster-shard11"
  alarm_description = "No session of shard 11 stayed the master for NoMasterMinutes - kubesync watches none of its clusters"
  namespace         = "kubesync"
  metric_name       = "MasterHeartbeat"
  statistic         = "Sum"
  period            = 60
  dimensions = {
    "service" = "kubesync-${var.deployment_id}"
    "shard"   = "11"
  }
  evaluation_periods  = var.no_master_minutes
  datapoints_to_alarm = var.no_master_minutes
  threshold           = 1
  comparison_operator = "LessThanThreshold"
  treat_missing_data  = "breaching"
  actions_enabled     = (local.is_scheduled ? true : false)
  alarm_actions       = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
  ok_actions          = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
}

resource "aws_scheduler_schedule" "watch_schedule_shard12" {
  count               = local.has_shard12 ? 1 : 0
  name                = "kubesync-${var.deployment_id}-watch-shard12"
  description         = "Starts a session of kubesync for shard 12"
  schedule_expression = var.schedule
  state               = var.schedule_state
  flexible_time_window {
    mode = "OFF"
  }
  target {
    arn      = aws_lambda_function.watch_function.arn
    role_arn = aws_iam_role.scheduler_role.arn
    input    = "{\"shard\": \"12\"}"
    retry_policy {
      maximum_retry_attempts       = 0
      maximum_event_age_in_seconds = 60
    }
    dead_letter_config {
      arn = aws_sqs_queue.dead_letters.arn
    }
  }
}

resource "aws_scheduler_schedule" "resync_every_shard12" {
  count               = local.resyncs_shard12 ? 1 : 0
  name                = "kubesync-${var.deployment_id}-resync-shard12"
  description         = "Starts a full resync of kubesync for shard 12"
  schedule_expression = var.resync_schedule
  state               = var.schedule_state
  flexible_time_window {
    mode = "OFF"
  }
  target {
    arn      = aws_lambda_function.resync_function.arn
    role_arn = aws_iam_role.scheduler_role.arn
    input    = "{\"dry_run\": false, \"force\": false, \"scheduled\": true, \"shard\": \"12\"}"
    retry_policy {
      maximum_retry_attempts       = 0
      maximum_event_age_in_seconds = 60
    }
    dead_letter_config {
      arn = aws_sqs_queue.dead_letters.arn
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "no_master_shard12_alarm" {
  count             = local.has_shard12 ? 1 : 0
  alarm_name        = "kubesync-${var.deployment_id}-NoMaster-shard12"
  alarm_description = "No session of shard 12 stayed the master for NoMasterMinutes - kubesync watches none of its clusters"
  namespace         = "kubesync"
  metric_name       = "MasterHeartbeat"
  statistic         = "Sum"
  period            = 60
  dimensions = {
    "service" = "kubesync-${var.deployment_id}"
    "shard"   = "12"
  }
  evaluation_periods  = var.no_master_minutes
  datapoints_to_alarm = var.no_master_minutes
  threshold           = 1
  comparison_operator = "LessThanThreshold"
  treat_missing_data  = "breaching"
  actions_enabled     = (local.is_scheduled ? true : false)
  alarm_actions       = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
  ok_actions          = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
}

resource "aws_scheduler_schedule" "watch_schedule_shard13" {
  count               = local.has_shard13 ? 1 : 0
  name                = "kubesync-${var.deployment_id}-watch-shard13"
  description         = "Starts a session of kubesync for shard 13"
  schedule_expression = var.schedule
  state               = var.schedule_state
  flexible_time_window {
    mode = "OFF"
  }
  target {
    arn      = aws_lambda_function.watch_function.arn
    role_arn = aws_iam_role.scheduler_role.arn
    input    = "{\"shard\": \"13\"}"
    retry_policy {
      maximum_retry_attempts       = 0
      maximum_event_age_in_seconds = 60
    }
    dead_letter_config {
      arn = aws_sqs_queue.dead_letters.arn
    }
  }
}

resource "aws_scheduler_schedule" "resync_every_shard13" {
  count               = local.resyncs_shard13 ? 1 : 0
  name                = "kubesync-${var.deployment_id}-resync-shard13"
  description         = "Starts a full resync of kubesync for shard 13"
  schedule_expression = var.resync_schedule
  state               = var.schedule_state
  flexible_time_window {
    mode = "OFF"
  }
  target {
    arn      = aws_lambda_function.resync_function.arn
    role_arn = aws_iam_role.scheduler_role.arn
    input    = "{\"dry_run\": false, \"force\": false, \"scheduled\": true, \"shard\": \"13\"}"
    retry_policy {
      maximum_retry_attempts       = 0
      maximum_event_age_in_seconds = 60
    }
    dead_letter_config {
      arn = aws_sqs_queue.dead_letters.arn
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "no_master_shard13_alarm" {
  count             = local.has_shard13 ? 1 : 0
  alarm_name        = "kubesync-${var.deployment_id}-NoMaster-shard13"
  alarm_description = "No session of shard 13 stayed the master for NoMasterMinutes - kubesync watches none of its clusters"
  namespace         = "kubesync"
  metric_name       = "MasterHeartbeat"
  statistic         = "Sum"
  period            = 60
  dimensions = {
    "service" = "kubesync-${var.deployment_id}"
    "shard"   = "13"
  }
  evaluation_periods  = var.no_master_minutes
  datapoints_to_alarm = var.no_master_minutes
  threshold           = 1
  comparison_operator = "LessThanThreshold"
  treat_missing_data  = "breaching"
  actions_enabled     = (local.is_scheduled ? true : false)
  alarm_actions       = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
  ok_actions          = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
}

resource "aws_scheduler_schedule" "watch_schedule_shard14" {
  count               = local.has_shard14 ? 1 : 0
  name                = "kubesync-${var.deployment_id}-watch-shard14"
  description         = "Starts a session of kubesync for shard 14"
  schedule_expression = var.schedule
  state               = var.schedule_state
  flexible_time_window {
    mode = "OFF"
  }
  target {
    arn      = aws_lambda_function.watch_function.arn
    role_arn = aws_iam_role.scheduler_role.arn
    input    = "{\"shard\": \"14\"}"
    retry_policy {
      maximum_retry_attempts       = 0
      maximum_event_age_in_seconds = 60
    }
    dead_letter_config {
      arn = aws_sqs_queue.dead_letters.arn
    }
  }
}

resource "aws_scheduler_schedule" "resync_every_shard14" {
  count               = local.resyncs_shard14 ? 1 : 0
  name                = "kubesync-${var.deployment_id}-resync-shard14"
  description         = "Starts a full resync of kubesync for shard 14"
  schedule_expression = var.resync_schedule
  state               = var.schedule_state
  flexible_time_window {
    mode = "OFF"
  }
  target {
    arn      = aws_lambda_function.resync_function.arn
    role_arn = aws_iam_role.scheduler_role.arn
    input    = "{\"dry_run\": false, \"force\": false, \"scheduled\": true, \"shard\": \"14\"}"
    retry_policy {
      maximum_retry_attempts       = 0
      maximum_event_age_in_seconds = 60
    }
    dead_letter_config {
      arn = aws_sqs_queue.dead_letters.arn
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "no_master_shard14_alarm" {
  count             = local.has_shard14 ? 1 : 0
  alarm_name        = "kubesync-${var.deployment_id}-NoMaster-shard14"
  alarm_description = "No session of shard 14 stayed the master for NoMasterMinutes - kubesync watches none of its clusters"
  namespace         = "kubesync"
  metric_name       = "MasterHeartbeat"
  statistic         = "Sum"
  period            = 60
  dimensions = {
    "service" = "kubesync-${var.deployment_id}"
    "shard"   = "14"
  }
  evaluation_periods  = var.no_master_minutes
  datapoints_to_alarm = var.no_master_minutes
  threshold           = 1
  comparison_operator = "LessThanThreshold"
  treat_missing_data  = "breaching"
  actions_enabled     = (local.is_scheduled ? true : false)
  alarm_actions       = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
  ok_actions          = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
}

resource "aws_scheduler_schedule" "watch_schedule_shard15" {
  count               = local.has_shard15 ? 1 : 0
  name                = "kubesync-${var.deployment_id}-watch-shard15"
  description         = "Starts a session of kubesync for shard 15"
  schedule_expression = var.schedule
  state               = var.schedule_state
  flexible_time_window {
    mode = "OFF"
  }
  target {
    arn      = aws_lambda_function.watch_function.arn
    role_arn = aws_iam_role.scheduler_role.arn
    input    = "{\"shard\": \"15\"}"
    retry_policy {
      maximum_retry_attempts       = 0
      maximum_event_age_in_seconds = 60
    }
    dead_letter_config {
      arn = aws_sqs_queue.dead_letters.arn
    }
  }
}

resource "aws_scheduler_schedule" "resync_every_shard15" {
  count               = local.resyncs_shard15 ? 1 : 0
  name                = "kubesync-${var.deployment_id}-resync-shard15"
  description         = "Starts a full resync of kubesync for shard 15"
  schedule_expression = var.resync_schedule
  state               = var.schedule_state
  flexible_time_window {
    mode = "OFF"
  }
  target {
    arn      = aws_lambda_function.resync_function.arn
    role_arn = aws_iam_role.scheduler_role.arn
    input    = "{\"dry_run\": false, \"force\": false, \"scheduled\": true, \"shard\": \"15\"}"
    retry_policy {
      maximum_retry_attempts       = 0
      maximum_event_age_in_seconds = 60
    }
    dead_letter_config {
      arn = aws_sqs_queue.dead_letters.arn
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "no_master_shard15_alarm" {
  count             = local.has_shard15 ? 1 : 0
  alarm_name        = "kubesync-${var.deployment_id}-NoMaster-shard15"
  alarm_description = "No session of shard 15 stayed the master for NoMasterMinutes - kubesync watches none of its clusters"
  namespace         = "kubesync"
  metric_name       = "MasterHeartbeat"
  statistic         = "Sum"
  period            = 60
  dimensions = {
    "service" = "kubesync-${var.deployment_id}"
    "shard"   = "15"
  }
  evaluation_periods  = var.no_master_minutes
  datapoints_to_alarm = var.no_master_minutes
  threshold           = 1
  comparison_operator = "LessThanThreshold"
  treat_missing_data  = "breaching"
  actions_enabled     = (local.is_scheduled ? true : false)
  alarm_actions       = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
  ok_actions          = (local.has_alarm_topic ? [var.alarm_topic_arn] : [])
}

resource "aws_cloudwatch_dashboard" "dashboard" {
  count          = local.has_dashboard ? 1 : 0
  dashboard_name = "kubesync-${var.deployment_id}"
  dashboard_body = "{\"widgets\": [\n  {\"type\": \"metric\", \"x\": 0, \"y\": 0, \"width\": 8, \"height\": 6, \"properties\": {\n    \"title\": \"Master\", \"region\": \"${data.aws_region.this.name}\", \"view\": \"timeSeries\", \"period\": 60, \"stat\": \"Sum\",\n    \"metrics\": [\n      [\"kubesync\", \"MasterHeartbeat\", \"service\", \"kubesync-${var.deployment_id}\"],\n      [{\"expression\": \"SEARCH('{kubesync,service,shard} service=\\\"kubesync-${var.deployment_id}\\\" MetricName=\\\"MasterHeartbeat\\\"', 'Sum', 60)\", \"id\": \"shards\"}],\n      [\"kubesync\", \"SessionsCutShort\", \"service\", \"kubesync-${var.deployment_id}\"],\n      [\"AWS/Lambda\", \"Errors\", \"FunctionName\", \"${aws_lambda_function.watch_function.function_name}\"],\n      [\"AWS/Lambda\", \"Throttles\", \"FunctionName\", \"${aws_lambda_function.watch_function.function_name}\"]\n    ]}},\n  {\"type\": \"metric\", \"x\": 8, \"y\": 0, \"width\": 8, \"height\": 6, \"properties\": {\n    \"title\": \"Event to accepted batch, recording in a minute (s)\", \"region\": \"${data.aws_region.this.name}\", \"view\": \"timeSeries\", \"period\": 60, \"stat\": \"Maximum\",\n    \"metrics\": [\n      [\"kubesync\", \"LagMedian\", \"service\", \"kubesync-${var.deployment_id}\"],\n      [\"kubesync\", \"LagP99\", \"service\", \"kubesync-${var.deployment_id}\"],\n      [\"kubesync\", \"RecordingTime\", \"service\", \"kubesync-${var.deployment_id}\", {\"stat\": \"Sum\"}]\n    ]}},\n  {\"type\": \"metric\", \"x\": 16, \"y\": 0, \"width\": 8, \"height\": 6, \"properties\": {\n    \"title\": \"Hand-over: nobody watched for (s)\", \"region\": \"${data.aws_region.this.name}\", \"view\": \"timeSeries\", \"period\": 60, \"stat\": \"Maximum\",\n    \"metrics\": [\n      [\"kubesync\", \"HandOverGap\", \"service\", \"kubesync-${var.deployment_id}\"]\n    ]}},\n  {\"type\": \"metric\", \"x\": 0, \"y\": 6, \"width\": 8, \"height\": 6, \"properties\": {\n    \"title\": \"Events\", \"region\": \"${data.aws_region.this.name}\", \"view\": \"timeSeries\", \"period\": 60, \"stat\": \"Sum\",\n    \"metrics\": [\n      [\"kubesync\", \"Events\", \"service\", \"kubesync-${var.deployment_id}\"],\n      [\"kubesync\", \"EventsMerged\", \"service\", \"kubesync-${var.deployment_id}\"],\n      [\"kubesync\", \"KeysChanged\", \"service\", \"kubesync-${var.deployment_id}\"],\n      [\"kubesync\", \"Windows\", \"service\", \"kubesync-${var.deployment_id}\"]\n    ]}},\n  {\"type\": \"metric\", \"x\": 8, \"y\": 6, \"width\": 8, \"height\": 6, \"properties\": {\n    \"title\": \"Hosted zones\", \"region\": \"${data.aws_region.this.name}\", \"view\": \"timeSeries\", \"period\": 60, \"stat\": \"Sum\",\n    \"metrics\": [\n      [\"kubesync\", \"Changes\", \"service\", \"kubesync-${var.deployment_id}\"],\n      [\"kubesync\", \"RecordSetsDeleted\", \"service\", \"kubesync-${var.deployment_id}\"],\n      [\"kubesync\", \"Batches\", \"service\", \"kubesync-${var.deployment_id}\"],\n      [\"kubesync\", \"BatchesRefused\", \"service\", \"kubesync-${var.deployment_id}\"],\n      [\"kubesync\", \"Throttles\", \"service\", \"kubesync-${var.deployment_id}\"],\n      [\"kubesync\", \"TablesThrottled\", \"service\", \"kubesync-${var.deployment_id}\"]\n    ]}},\n  {\"type\": \"metric\", \"x\": 16, \"y\": 6, \"width\": 8, \"height\": 6, \"properties\": {\n    \"title\": \"Waiting for a person\", \"region\": \"${data.aws_region.this.name}\", \"view\": \"timeSeries\", \"period\": 60, \"stat\": \"Maximum\",\n    \"metrics\": [\n      [\"kubesync\", \"HeldDeletions\", \"service\", \"kubesync-${var.deployment_id}\"],\n      [\"kubesync\", \"InferredDeletions\", \"service\", \"kubesync-${var.deployment_id}\"],\n      [\"kubesync\", \"Conflicts\", \"service\", \"kubesync-${var.deployment_id}\"],\n      [\"kubesync\", \"WaitingForPerson\", \"service\", \"kubesync-${var.deployment_id}\"],\n      [\"kubesync\", \"RegistrationsLost\", \"service\", \"kubesync-${var.deployment_id}\"],\n      [\"kubesync\", \"KeysSetAside\", \"service\", \"kubesync-${var.deployment_id}\"],\n      [\"AWS/SQS\", \"ApproximateNumberOfMessagesVisible\", \"QueueName\", \"${aws_sqs_queue.dead_letters.name}\"]\n    ]}},\n  {\"type\": \"metric\", \"x\": 0, \"y\": 12, \"width\": 8, \"height\": 6, \"properties\": {\n    \"title\": \"Errors of listeners, by code and cluster\", \"region\": \"${data.aws_region.this.name}\", \"view\": \"timeSeries\", \"period\": 60, \"stat\": \"Sum\",\n    \"metrics\": [\n      [{\"expression\": \"SEARCH('{kubesync,service,code,key,cluster} service=\\\"kubesync-${var.deployment_id}\\\" MetricName=\\\"ListenerErrors\\\"', 'Sum', 60)\", \"id\": \"codes\"}]\n    ]}},\n  {\"type\": \"metric\", \"x\": 8, \"y\": 12, \"width\": 8, \"height\": 6, \"properties\": {\n    \"title\": \"Complete lists; resyncs: errors, differences, hours since the last\", \"region\": \"${data.aws_region.this.name}\", \"view\": \"timeSeries\", \"period\": 60, \"stat\": \"Sum\",\n    \"metrics\": [\n      [\"kubesync\", \"Relists\", \"service\", \"kubesync-${var.deployment_id}\"],\n      [\"kubesync\", \"ResyncErrors\", \"service\", \"kubesync-${var.deployment_id}\"],\n      [\"kubesync\", \"ResyncDifferences\", \"service\", \"kubesync-${var.deployment_id}\"],\n      [\"kubesync\", \"HoursSinceResync\", \"service\", \"kubesync-${var.deployment_id}\", {\"stat\": \"Maximum\"}]\n    ]}},\n  {\"type\": \"metric\", \"x\": 16, \"y\": 12, \"width\": 8, \"height\": 6, \"properties\": {\n    \"title\": \"How sessions ended\", \"region\": \"${data.aws_region.this.name}\", \"view\": \"timeSeries\", \"period\": 60, \"stat\": \"Sum\",\n    \"metrics\": [\n      [{\"expression\": \"SEARCH('{kubesync,service,ended} service=\\\"kubesync-${var.deployment_id}\\\" MetricName=\\\"Sessions\\\"', 'Sum', 60)\", \"id\": \"ends\"}]\n    ]}},\n  {\"type\": \"metric\", \"x\": 0, \"y\": 18, \"width\": 8, \"height\": 6, \"properties\": {\n    \"title\": \"Named upstreams\", \"region\": \"${data.aws_region.this.name}\", \"view\": \"timeSeries\", \"period\": 60, \"stat\": \"Maximum\",\n    \"metrics\": [\n      [\"kubesync\", \"NamedUpstreamsWritten\", \"service\", \"kubesync-${var.deployment_id}\"],\n      [\"kubesync\", \"NamedUpstreamsStuck\", \"service\", \"kubesync-${var.deployment_id}\"]\n    ]}},\n  {\"type\": \"metric\", \"x\": 8, \"y\": 18, \"width\": 8, \"height\": 6, \"properties\": {\n    \"title\": \"What does not get through\", \"region\": \"${data.aws_region.this.name}\", \"view\": \"timeSeries\", \"period\": 60, \"stat\": \"Maximum\",\n    \"metrics\": [\n      [\"kubesync\", \"ListenersFailing\", \"service\", \"kubesync-${var.deployment_id}\"],\n      [\"kubesync\", \"ZonesStuck\", \"service\", \"kubesync-${var.deployment_id}\"],\n      [\"kubesync\", \"ZonesBlocked\", \"service\", \"kubesync-${var.deployment_id}\"],\n      [\"kubesync\", \"OpenKeys\", \"service\", \"kubesync-${var.deployment_id}\"]\n    ]}},\n  {\"type\": \"metric\", \"x\": 16, \"y\": 18, \"width\": 8, \"height\": 6, \"properties\": {\n    \"title\": \"Oldest change that waits (s)\", \"region\": \"${data.aws_region.this.name}\", \"view\": \"timeSeries\", \"period\": 60, \"stat\": \"Maximum\",\n    \"metrics\": [\n      [\"kubesync\", \"OldestOpenSeconds\", \"service\", \"kubesync-${var.deployment_id}\"],\n      [\"kubesync\", \"TurnWaitSeconds\", \"service\", \"kubesync-${var.deployment_id}\"]\n    ]}},\n  {\"type\": \"metric\", \"x\": 0, \"y\": 24, \"width\": 8, \"height\": 6, \"properties\": {\n    \"title\": \"Days until the first certificate or token ends\", \"region\": \"${data.aws_region.this.name}\", \"view\": \"timeSeries\", \"period\": 300, \"stat\": \"Minimum\",\n    \"metrics\": [\n      [\"kubesync\", \"CredentialDaysLeft\", \"service\", \"kubesync-${var.deployment_id}\"]\n    ]}}\n]}\n"
}

# Made from template.yaml by `make terraform`: change the template, not this file.

output "watch_function_name" {
  description = "The session function"
  value       = aws_lambda_function.watch_function.function_name
}

output "watch_role_arn" {
  description = "Role of the session function; on EKS it needs an access entry with the group kubesync (docs/clusters.md)"
  value       = aws_iam_role.watch_role.arn
}

output "resync_function_name" {
  description = "The resync function. Invoke it with one of events/*.json"
  value       = aws_lambda_function.resync_function.function_name
}

output "resync_role_arn" {
  description = "Role of the resync function; on EKS it needs an access entry as well"
  value       = aws_iam_role.resync_role.arn
}

output "deployment_id" {
  description = "KUBESYNC_DEPLOYMENT for the kubesync command"
  value       = var.deployment_id
}

output "table_prefix" {
  description = "KUBESYNC_TABLE_PREFIX for the kubesync command; its default already fits"
  value       = "kubesync-${var.deployment_id}"
}

output "upstreams_table_name" {
  description = "The upstreams table that proxies read; see docs/upstreams.md"
  value       = aws_dynamodb_table.upstreams_table.name
}

output "upstreams_table_stream_arn" {
  description = "The stream of the upstreams table, for readers that want pushes"
  value       = aws_dynamodb_table.upstreams_table.stream_arn
}

output "dead_letters_url" {
  description = "Queue of events that were not delivered and of invocations that failed"
  value       = aws_sqs_queue.dead_letters.url
}

output "alarms_notify" {
  description = "Who hears of alarms. Without AlarmTopicArn they notify nobody - set it, or poll kubesync status --check"
  value       = (local.has_alarm_topic ? var.alarm_topic_arn : "nobody")
}

output "dashboard_name" {
  description = "The CloudWatch dashboard of kubesync"
  value       = one(aws_cloudwatch_dashboard.dashboard[*].dashboard_name)
}

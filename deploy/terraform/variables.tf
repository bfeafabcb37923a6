# Made from template.yaml by `make terraform`: change the template, not this file.

variable "deployment_id" {
  description = "The id of this deployment. Tables, functions, metrics and the journal of every hosted zone carry it. Never change it later."
  type        = string
  default     = "main"
  validation {
    condition     = can(regex("^(?:[a-z0-9]([a-z0-9-]{0,22}[a-z0-9])?)$", var.deployment_id))
    error_message = "deployment_id: 1 to 24 lower-case letters, digits and hyphens, not at either end."
  }
}

variable "hosted_zone_arns" {
  description = "Hosted zones that kubesync may write, such as arn:aws:route53:::hostedzone/Z0123456789ABCDEFGHIJ"
  type        = list(string)
  validation {
    condition     = alltrue([for each in var.hosted_zone_arns : can(regex("^(?:arn:aws[a-z-]*:route53:::hostedzone/[A-Z0-9]{1,32})$", each))])
    error_message = "hosted_zone_arns: ARNs of hosted zones, separated by commas."
  }
}

variable "record_names" {
  description = "Names in these zones that kubesync may write, such as *.prod.example.com; * stands for any characters, dots included. Empty means any name"
  type        = string
  default     = ""
  validation {
    condition     = can(regex("^(?:([a-z0-9_.*?\\\\-]*[a-z0-9_*?-](,[a-z0-9_.*?\\\\-]*[a-z0-9_*?-])*)?)$", var.record_names)) && length(var.record_names) <= 2000
    error_message = "record_names: patterns in lower case, without a dot at the end, separated by commas."
  }
}

variable "secret_arns" {
  description = "Whole ARNs of the secrets that hold tokens, client certificates or CA bundles of clusters (secretsmanager:NAME); empty for none"
  type        = list(string)
  default     = []
  validation {
    condition     = alltrue([for each in var.secret_arns : can(regex("^(?:(arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@-]+)?)$", each))])
    error_message = "secret_arns: whole ARNs of secrets, separated by commas."
  }
}

variable "secret_prefix" {
  description = "Every secret of this account and region whose name begins so, such as kubesync/; for more than the 46 ARNs that SecretArns can hold"
  type        = string
  default     = ""
  validation {
    condition     = can(regex("^(?:([A-Za-z0-9_+=.@-][A-Za-z0-9/_+=.@-]*/)?)$", var.secret_prefix)) && length(var.secret_prefix) <= 256
    error_message = "secret_prefix: the beginning of names of secrets, up to and including a slash, or empty."
  }
}

variable "parameter_arns" {
  description = "Whole ARNs of the SSM parameters that hold tokens, client certificates or CA bundles of clusters (ssm:NAME); empty for none"
  type        = list(string)
  default     = []
  validation {
    condition     = alltrue([for each in var.parameter_arns : can(regex("^(?:(arn:aws[a-z-]*:ssm:[a-z0-9-]+:[0-9]{12}:parameter/[A-Za-z0-9/_.-]+)?)$", each))])
    error_message = "parameter_arns: whole ARNs of parameters, separated by commas."
  }
}

variable "secret_key_arns" {
  description = "Customer-managed KMS keys of these secrets and parameters; empty if they use AWS's own keys"
  type        = list(string)
  default     = []
  validation {
    condition     = alltrue([for each in var.secret_key_arns : can(regex("^(?:(arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+)?)$", each))])
    error_message = "secret_key_arns: ARNs of keys (not of aliases), separated by commas."
  }
}

variable "role_arns" {
  description = "Roles of other accounts that kubesync assumes for hosted zones or clusters there; empty for none"
  type        = list(string)
  default     = []
  validation {
    condition     = alltrue([for each in var.role_arns : can(regex("^(?:(arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]+)?)$", each))])
    error_message = "role_arns: ARNs of roles, separated by commas."
  }
}

variable "aws_identity_audiences" {
  description = "Audiences of the tokens that STS may issue for kubesync (--aws-identity AUDIENCE); empty for none"
  type        = list(string)
  default     = []
  validation {
    condition     = alltrue([for each in var.aws_identity_audiences : can(regex("^(?:([A-Za-z0-9:/._~-]{1,1000})?)$", each))])
    error_message = "aws_identity_audiences: audiences, separated by commas."
  }
}

variable "schedule" {
  description = "When a session starts. A session that finds a running master ends at once."
  type        = string
  default     = "rate(1 minute)"
  validation {
    condition     = can(regex("^(?:(rate|cron)\\(.+\\))$", var.schedule))
    error_message = "schedule: rate(...) or cron(...), as EventBridge Scheduler writes it."
  }
}

variable "schedule_state" {
  description = "DISABLED pauses kubesync. Its records and upstreams stay."
  type        = string
  default     = "ENABLED"
  validation {
    condition     = contains(["ENABLED", "DISABLED"], var.schedule_state)
    error_message = "schedule_state: one of the values that the description allows."
  }
}

variable "resync_schedule" {
  description = "When a full resync lists, compares and corrects everything; empty means only when a person asks for it"
  type        = string
  default     = "rate(1 day)"
  validation {
    condition     = can(regex("^(?:((rate|cron)\\(.+\\))?)$", var.resync_schedule))
    error_message = "resync_schedule: rate(...) or cron(...), in UTC, or empty."
  }
}

variable "maximum_runtime_seconds" {
  description = "Maximum runtime of a session. A function has 900 s; its last writes need up to 19 of them."
  type        = number
  default     = 840
  validation {
    condition     = var.maximum_runtime_seconds >= 60 && var.maximum_runtime_seconds <= 870
    error_message = "maximum_runtime_seconds: one of the values that the description allows."
  }
}

variable "memory_size" {
  description = "Megabytes. CPU is in proportion; 1,769 are one core. 512 are enough for 100 clusters of 100 Services; 1,024 for 20 of 5,000."
  type        = number
  default     = 512
  validation {
    condition     = var.memory_size >= 512 && var.memory_size <= 10240
    error_message = "memory_size: one of the values that the description allows."
  }
}

variable "architecture" {
  description = "Both architectures do the same; arm64 costs a fifth less."
  type        = string
  default     = "arm64"
  validation {
    condition     = contains(["x86_64", "arm64"], var.architecture)
    error_message = "architecture: one of the values that the description allows."
  }
}

variable "shards" {
  description = "How many masters run side by side, each for the clusters of its shard. One serves at most 300 clusters, or 225 that read Ingresses too."
  type        = number
  default     = 1
  validation {
    condition     = var.shards >= 1 && var.shards <= 16
    error_message = "shards: one of the values that the description allows."
  }
}

variable "reserved_concurrency" {
  description = "Concurrency of the session function - a master that drains, its successor, and one that waits. 3 means 3 for each shard. Use 0 if the account's limit allows no reservation."
  type        = number
  default     = 3
  validation {
    condition     = var.reserved_concurrency >= 0 && var.reserved_concurrency <= 100
    error_message = "reserved_concurrency: one of the values that the description allows."
  }
}

variable "subnet_ids" {
  description = "Subnets that reach private API servers; empty means that the functions are in no VPC"
  type        = list(string)
  default     = []
  validation {
    condition     = alltrue([for each in var.subnet_ids : can(regex("^(?:(subnet-[0-9a-f]+)?)$", each))])
    error_message = "subnet_ids: ids of subnets, separated by commas."
  }
}

variable "security_group_ids" {
  description = "Security groups of the functions; needed with SubnetIds"
  type        = list(string)
  default     = []
  validation {
    condition     = alltrue([for each in var.security_group_ids : can(regex("^(?:(sg-[0-9a-f]+)?)$", each))])
    error_message = "security_group_ids: ids of security groups, separated by commas."
  }
}

variable "cluster_metrics" {
  description = "Metrics of each cluster besides those of all together. They cost extra; without them kubesync status names the cluster."
  type        = string
  default     = "true"
  validation {
    condition     = contains(["true", "false"], var.cluster_metrics)
    error_message = "cluster_metrics: one of the values that the description allows."
  }
}

variable "with_dashboard" {
  description = "A dashboard, and the metrics that only it shows. Alarms need neither."
  type        = string
  default     = "true"
  validation {
    condition     = contains(["true", "false"], var.with_dashboard)
    error_message = "with_dashboard: one of the values that the description allows."
  }
}

variable "log_level" {
  description = "What the functions log, besides the metrics"
  type        = string
  default     = "INFO"
  validation {
    condition     = contains(["DEBUG", "INFO", "WARNING", "ERROR"], var.log_level)
    error_message = "log_level: one of the values that the description allows."
  }
}

variable "log_retention_days" {
  description = "How long CloudWatch keeps the log of both functions"
  type        = number
  default     = 30
  validation {
    condition     = contains([1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653], var.log_retention_days)
    error_message = "log_retention_days: one of the values that the description allows."
  }
}

variable "lag_alarm_seconds" {
  description = "The alarm for slow updates goes off when one change in a hundred takes longer than this from event to accepted batch"
  type        = number
  default     = 5
  validation {
    condition     = var.lag_alarm_seconds >= 1
    error_message = "lag_alarm_seconds: one of the values that the description allows."
  }
}

variable "no_master_minutes" {
  description = "The alarm for a missing master goes off after so many minutes. For a slower Schedule use at least twice the minutes between two sessions"
  type        = number
  default     = 3
  validation {
    condition     = var.no_master_minutes >= 3 && var.no_master_minutes <= 1440
    error_message = "no_master_minutes: one of the values that the description allows."
  }
}

variable "resync_overdue_hours" {
  description = "The alarm for a missing full resync goes off after so many hours. For a slower ResyncSchedule use a little more than twice the hours between two of them"
  type        = number
  default     = 50
  validation {
    condition     = var.resync_overdue_hours >= 1 && var.resync_overdue_hours <= 8784
    error_message = "resync_overdue_hours: one of the values that the description allows."
  }
}

variable "deletions_alarm_record_sets" {
  description = "The alarm for deletions goes off when so many record sets go within 15 minutes, for whatever reason"
  type        = number
  default     = 300
  validation {
    condition     = var.deletions_alarm_record_sets >= 1
    error_message = "deletions_alarm_record_sets: one of the values that the description allows."
  }
}

variable "alarm_topic_arn" {
  description = "SNS topic that gets the alarms; empty means that they notify nobody, and that only the console shows them"
  type        = string
  default     = ""
  validation {
    condition     = can(regex("^(?:(arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]+)?)$", var.alarm_topic_arn))
    error_message = "alarm_topic_arn: the ARN of an SNS topic, or empty."
  }
}

variable "artifacts" {
  description = "Folder with the zip files of functions and layers: `make terraform-artifacts` makes them in dist/terraform"
  type        = string
}

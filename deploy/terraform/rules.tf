resource "terraform_data" "rules" {
  lifecycle {
    precondition {
      condition     = length(var.subnet_ids) == 0 || length(var.security_group_ids) > 0
      error_message = "subnet_ids needs security_group_ids."
    }
  }
}

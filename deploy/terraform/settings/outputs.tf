output "settings" {
  description = "The settings file as read."
  value       = local.settings

  precondition {
    condition     = !startswith(local.project, "your-")
    error_message = "Write the id of your project into the settings file first."
  }
  precondition {
    condition     = contains(["inline", "cloud_tasks"], local.settings.dispatch_mode)
    error_message = "dispatch_mode is inline or cloud_tasks; the embedded mode is for one machine."
  }
  precondition {
    condition     = local.settings.dispatch_mode != "cloud_tasks" || local.queue != null
    error_message = "dispatch_mode cloud_tasks needs a queue."
  }
  precondition {
    condition     = (local.queue == null) == !contains(keys(local.services), "worker")
    error_message = "A queue and a worker service need each other."
  }
  precondition {
    condition     = local.settings.dispatch_mode != "inline" || try(local.services.live.min_instances, 0) >= 1
    error_message = "In the inline mode the live service runs what is due: services.live.min_instances >= 1 does not hold."
  }
  precondition {
    condition     = !contains(["sync-jobs", "audio-merge"], lower(try(local.queue.name, "")))
    error_message = "The queue must be one of its own, not sync-jobs or audio-merge."
  }
  precondition {
    condition     = local.queue == null || try(local.services.worker.timeout_seconds, 0) >= local.budgets.dispatch_deadline_seconds
    error_message = "services.worker.timeout_seconds >= budgets.dispatch_deadline_seconds does not hold."
  }
  precondition {
    condition     = local.budgets.dispatch_deadline_seconds >= local.budgets.run_timeout_seconds
    error_message = "budgets.dispatch_deadline_seconds >= budgets.run_timeout_seconds does not hold."
  }
  precondition {
    condition     = local.budgets.run_lock_ttl_seconds > local.budgets.run_timeout_seconds
    error_message = "budgets.run_lock_ttl_seconds > budgets.run_timeout_seconds does not hold."
  }
}

output "image" {
  description = "The image of every service."
  value       = "${local.location}-docker.pkg.dev/${local.project}/${local.settings.image.repository}/${local.settings.image.name}:${var.release}"
}

output "emails" {
  description = "Addresses of the service accounts by role."
  value       = local.emails
}

output "urls" {
  description = "Addresses of the services by role."
  value       = local.urls
}

output "handler_url" {
  description = "Where Cloud Tasks delivers; also the audience of its tokens. Null without a queue."
  value       = local.handler_url
}

output "reconcile_url" {
  description = "Where Cloud Scheduler asks for a round of the reconciler. Null without a queue."
  value       = local.reconcile_url
}

output "enqueuers" {
  description = "Roles that hand jobs over: all of them, as worker and live reconcile and admit too."
  value       = local.queue == null ? [] : keys(local.services)
}

output "runners" {
  description = "Roles that take the run lock."
  value       = local.run_lock == null ? [] : local.runners
}

output "environment" {
  description = "Environment of each role, secrets apart."
  value       = local.environment
}

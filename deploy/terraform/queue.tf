# The dedicated queue. Nothing here reads or changes any other queue of the project.

resource "google_cloud_tasks_queue" "finalization" {
  count    = local.queue == null ? 0 : 1
  project  = local.project
  location = local.location
  name     = local.queue.name

  rate_limits {
    max_concurrent_dispatches = local.queue.max_concurrent_dispatches
    max_dispatches_per_second = local.queue.max_dispatches_per_second
  }

  retry_config {
    max_attempts       = local.queue.max_attempts
    max_retry_duration = "0s"
    min_backoff        = "${local.queue.min_backoff_seconds}s"
    max_backoff        = "${local.queue.max_backoff_seconds}s"
    max_doublings      = local.queue.max_doublings
  }

  # Its tasks would go with it, and for days no queue of that name could be made again.
  lifecycle {
    prevent_destroy = true
  }

  depends_on = [google_project_service.needed]
}

resource "google_cloud_tasks_queue_iam_member" "enqueuer" {
  for_each = toset(module.settings.enqueuers)
  project  = local.project
  location = local.location
  name     = google_cloud_tasks_queue.finalization[0].name
  role     = "roles/cloudtasks.enqueuer"
  member   = google_service_account.role[each.value].member
}

# Whoever creates a task that carries a token of the invoker must be allowed to act as it.
resource "google_service_account_iam_member" "acts_as_invoker" {
  for_each           = toset(module.settings.enqueuers)
  service_account_id = google_service_account.role["invoker"].name
  role               = "roles/iam.serviceAccountUser"
  member             = google_service_account.role[each.value].member
}

# A second clock for the reconciler. The processes run rounds themselves; this one also works where
# none of them is up.

resource "google_cloud_scheduler_job" "reconcile" {
  count            = local.queue == null || local.settings.scheduler == null ? 0 : 1
  project          = local.project
  region           = local.location
  name             = local.settings.scheduler.name
  schedule         = local.settings.scheduler.schedule
  time_zone        = "Etc/UTC"
  attempt_deadline = "${local.settings.scheduler.attempt_deadline_seconds}s"

  # The next round comes in minutes; a repeated call would find a fresh stamp and skip.
  retry_config {
    retry_count = 0
  }

  http_target {
    http_method = "POST"
    uri         = module.settings.reconcile_url

    oidc_token {
      service_account_email = google_service_account.role["scheduler"].email
      # The worker knows one audience, for both of its callers.
      audience = module.settings.handler_url
    }
  }

  depends_on = [module.worker]
}

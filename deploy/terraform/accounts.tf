resource "google_service_account" "role" {
  for_each     = local.settings.accounts
  project      = local.project
  account_id   = each.value
  display_name = "listen-finalization: ${each.key}"
  depends_on   = [google_project_service.needed]
}

# Firestore knows no rights below a database.
resource "google_project_iam_member" "documents" {
  for_each = local.settings.services
  project  = local.project
  role     = "roles/datastore.user"
  member   = google_service_account.role[each.key].member

  condition {
    title      = "one_database"
    expression = "resource.name == \"projects/${local.project}/databases/${local.settings.firestore.database}\""
  }
}

resource "google_secret_manager_secret_iam_member" "run_lock" {
  for_each  = toset(module.settings.runners)
  project   = local.project
  secret_id = local.settings.run_lock.secret
  role      = "roles/secretmanager.secretAccessor"
  member    = google_service_account.role[each.value].member
}

# Who may call the worker. Its own verifier enforces it: see invoker_iam_disabled in service/.
resource "google_cloud_run_v2_service_iam_member" "worker_callers" {
  for_each = local.queue == null ? toset([]) : setintersection(["invoker", "scheduler"], keys(local.settings.accounts))
  project  = local.project
  location = local.location
  name     = module.worker["worker"].name
  role     = "roles/run.invoker"
  member   = google_service_account.role[each.value].member
}

locals {
  behind = { for role, service in local.settings.services : role => service if role == "worker" }
  front  = { for role, service in local.settings.services : role => service if role != "worker" }
}

module "worker" {
  source      = "./service"
  for_each    = local.behind
  role        = each.key
  project     = local.project
  location    = local.location
  image       = module.settings.image
  account     = google_service_account.role[each.key].email
  service     = each.value
  environment = module.settings.environment[each.key]
  run_lock    = contains(module.settings.runners, each.key) ? local.settings.run_lock : null

  depends_on = [
    google_firestore_field.jobs,
    google_firestore_index.jobs,
    google_project_iam_member.documents,
    google_secret_manager_secret_iam_member.run_lock,
  ]
}

# After the worker, so that nothing is handed over to a route that is not there yet.
module "front" {
  source      = "./service"
  for_each    = local.front
  role        = each.key
  project     = local.project
  location    = local.location
  image       = module.settings.image
  account     = google_service_account.role[each.key].email
  service     = each.value
  environment = module.settings.environment[each.key]
  run_lock    = contains(module.settings.runners, each.key) ? local.settings.run_lock : null

  depends_on = [
    google_cloud_run_v2_service_iam_member.worker_callers,
    google_cloud_tasks_queue_iam_member.enqueuer,
    google_service_account_iam_member.acts_as_invoker,
    module.worker,
  ]
}

# What a settings file means: every name, URL, number and environment that the rest uses.
# No provider and no resource, so that tests evaluate it as it is.

terraform {
  required_version = ">= 1.9"
}

variable "settings_file" {
  description = "Path of the settings file of one environment."
  type        = string
}

variable "project_number" {
  description = "Number of the project; Cloud Run makes its URLs of it."
  type        = string
}

variable "release" {
  description = "Tag of the image in the repository that the settings name."
  type        = string
}

locals {
  settings = jsondecode(file(var.settings_file))
  project  = local.settings.project
  location = local.settings.location
  queue    = local.settings.queue
  budgets  = local.settings.budgets
  services = local.settings.services
  run_lock = local.settings.run_lock

  run_path       = "/v1/conversation-finalization-jobs/run"
  reconcile_path = "/v1/conversation-finalization-jobs/reconcile"

  emails = {
    for role, name in local.settings.accounts :
    role => "${name}@${local.project}.iam.gserviceaccount.com"
  }
  # Known before the service exists, which lets the worker's own environment hold its URL.
  urls = {
    for role, service in local.services :
    role => "https://${service.name}-${var.project_number}.${local.location}.run.app"
  }
  handler_url   = local.queue == null ? null : "${local.urls.worker}${local.run_path}"
  reconcile_url = local.queue == null ? null : "${local.urls.worker}${local.reconcile_path}"

  # Who may run a conversation, and so who takes the run lock.
  runners = [for role in ["worker", "live"] : role if contains(keys(local.services), role)]

  common = {
    LISTEN_FINALIZATION_DISPATCH_MODE              = local.settings.dispatch_mode
    LISTEN_FINALIZATION_FIREBASE_PROJECT           = coalesce(local.settings.firebase_project, local.project)
    LISTEN_FINALIZATION_FIRESTORE_PROJECT          = local.project
    LISTEN_FINALIZATION_FIRESTORE_DATABASE         = local.settings.firestore.database
    LISTEN_FINALIZATION_RECONCILE_INTERVAL_SECONDS = tostring(local.budgets.reconcile_interval_seconds)
    LISTEN_FINALIZATION_RECONCILE_STALE_SECONDS    = tostring(local.budgets.reconcile_stale_seconds)
    LISTEN_FINALIZATION_SHUTDOWN_GRACE_SECONDS     = tostring(local.budgets.shutdown_grace_seconds)
    HTTP_LISTEN_FINALIZATION_RUN_TIMEOUT           = tostring(local.budgets.run_timeout_seconds)
  }
  tasks = local.queue == null ? {} : {
    SYNC_TASKS_PROJECT                                  = local.project
    SYNC_TASKS_LOCATION                                 = local.location
    LISTEN_FINALIZATION_TASKS_QUEUE                     = local.queue.name
    LISTEN_FINALIZATION_TASKS_HANDLER_URL               = local.handler_url
    LISTEN_FINALIZATION_TASKS_OIDC_AUDIENCE             = local.handler_url
    LISTEN_FINALIZATION_TASKS_INVOKER_SA                = local.emails.invoker
    LISTEN_FINALIZATION_TASKS_MAX_ATTEMPTS              = tostring(local.queue.max_attempts)
    LISTEN_FINALIZATION_TASKS_DISPATCH_DEADLINE_SECONDS = tostring(local.budgets.dispatch_deadline_seconds)
  }
  own = {
    api = {}
    worker = merge(
      { LISTEN_FINALIZATION_SLOTS = try(tostring(local.services.worker.concurrency), "") },
      local.settings.scheduler == null ? {} : { LISTEN_FINALIZATION_SCHEDULER_SA = local.emails.scheduler },
    )
    live = {}
  }
  lock = local.run_lock == null ? {} : {
    LISTEN_FINALIZATION_RUN_LOCK_TTL_SECONDS = tostring(local.budgets.run_lock_ttl_seconds)
  }
  environment = {
    for role, service in local.services : role => merge(
      local.common,
      local.tasks,
      local.own[role],
      contains(local.runners, role) ? local.lock : {},
      service.environment,
    )
  }
}

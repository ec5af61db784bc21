locals {
  project  = jsondecode(file(var.settings_file)).project
  location = jsondecode(file(var.settings_file)).location
  settings = module.settings.settings
  queue    = local.settings.queue
}

module "settings" {
  source         = "./settings"
  settings_file  = var.settings_file
  project_number = data.google_project.this.number
  release        = var.release
}

data "google_project" "this" {
  project_id = local.project
}

resource "google_project_service" "needed" {
  for_each = toset([
    "artifactregistry.googleapis.com",
    "cloudresourcemanager.googleapis.com",
    "cloudscheduler.googleapis.com",
    "cloudtasks.googleapis.com",
    "firestore.googleapis.com",
    "iam.googleapis.com",
    "run.googleapis.com",
    "secretmanager.googleapis.com",
  ])
  service            = each.value
  disable_on_destroy = false
}

# One role as a Cloud Run service.

variable "role" {
  description = "api, worker or live."
  type        = string
}

variable "project" {
  type = string
}

variable "location" {
  type = string
}

variable "image" {
  type = string
}

variable "account" {
  description = "Address of the service account that the role runs as."
  type        = string
}

variable "service" {
  description = "The role's part of the settings file."
  type = object({
    name            = string
    ingress         = string
    timeout_seconds = number
    concurrency     = number
    min_instances   = number
    max_instances   = number
    cpu             = string
    memory          = string
    environment     = map(string)
  })
}

variable "environment" {
  type = map(string)
}

variable "run_lock" {
  description = "Secret, version and network of the run lock's Redis; null: no run lock."
  type = object({
    secret     = string
    version    = string
    network    = string
    subnetwork = string
  })
  default = null
}

resource "google_cloud_run_v2_service" "role" {
  project  = var.project
  location = var.location
  name     = var.service.name
  # Cloud Tasks and Cloud Scheduler of the same project count as internal.
  ingress = { all = "INGRESS_TRAFFIC_ALL", internal = "INGRESS_TRAFFIC_INTERNAL_ONLY" }[var.service.ingress]

  # Cloud Run's own check would replace the signature of the caller's token before the container
  # sees it, and every route here verifies signature, issuer, audience and account itself.
  invoker_iam_disabled = true
  deletion_protection  = true

  template {
    service_account                  = var.account
    timeout                          = "${var.service.timeout_seconds}s"
    max_instance_request_concurrency = var.service.concurrency

    scaling {
      min_instance_count = var.service.min_instances
      max_instance_count = var.service.max_instances
    }

    dynamic "vpc_access" {
      for_each = var.run_lock == null ? [] : var.run_lock.network == null ? [] : [var.run_lock]
      content {
        egress = "PRIVATE_RANGES_ONLY"
        network_interfaces {
          network    = vpc_access.value.network
          subnetwork = vpc_access.value.subnetwork
        }
      }
    }

    containers {
      image = var.image
      args  = ["serve", "--role", var.role]

      ports {
        container_port = 8080
      }

      resources {
        limits = {
          cpu    = var.service.cpu
          memory = var.service.memory
        }
        # The reconciler, the drain at shutdown and runs that outlive a socket work outside of
        # requests; with idle CPU they would stand still between two of them.
        cpu_idle          = false
        startup_cpu_boost = true
      }

      dynamic "env" {
        for_each = var.environment
        content {
          name  = env.key
          value = env.value
        }
      }

      dynamic "env" {
        for_each = var.run_lock == null ? [] : [var.run_lock]
        content {
          name = "LISTEN_FINALIZATION_RUN_LOCK_URL"
          value_source {
            secret_key_ref {
              secret  = env.value.secret
              version = env.value.version
            }
          }
        }
      }

      startup_probe {
        period_seconds    = 5
        timeout_seconds   = 4
        failure_threshold = 24
        http_get {
          path = "/readyz"
          port = 8080
        }
      }

      liveness_probe {
        period_seconds    = 30
        timeout_seconds   = 5
        failure_threshold = 3
        http_get {
          path = "/livez"
          port = 8080
        }
      }
    }
  }
}

output "name" {
  value = google_cloud_run_v2_service.role.name
}

terraform {
  required_version = ">= 1.9"

  required_providers {
    # From 7.45 on, ttl_config of a Firestore field is known to take an expiration_offset.
    google = {
      source  = "hashicorp/google"
      version = ">= 7.45, < 8.0"
    }
  }

  # Bucket and prefix are given to `terraform init`: one state for each environment.
  backend "gcs" {}
}

provider "google" {
  project = local.project
  region  = local.location
}

# No defaults: which environment is changed, and to which release, is said each time.

variable "settings_file" {
  description = "Path of the settings file of the environment, as ../production.json."
  type        = string
}

variable "release" {
  description = "Tag of the image to run."
  type        = string

  validation {
    condition     = var.release != "latest" && can(regex("^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$", var.release))
    error_message = "Name one release by its tag; latest is none, and could not be rolled back to."
  }
}

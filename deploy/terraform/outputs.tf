output "urls" {
  description = "Addresses of the services by role."
  value       = module.settings.urls
}

output "worker_exports" {
  description = "The worker's environment as lines for a shell, secrets apart: for check and doctor elsewhere."
  value = join("\n", [
    for name, value in try(module.settings.environment.worker, {}) : "export ${name}='${value}'"
  ])
}

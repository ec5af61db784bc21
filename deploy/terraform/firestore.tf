# Indexes, exemptions and retention, as the files in deploy/firestore have them.

resource "google_firestore_index" "jobs" {
  for_each    = module.settings.indexes
  project     = local.project
  database    = local.settings.firestore.database
  collection  = each.value.collectionGroup
  query_scope = each.value.queryScope

  dynamic "fields" {
    for_each = each.value.fields
    content {
      field_path = fields.value.fieldPath
      order      = fields.value.order
    }
  }

  depends_on = [google_project_service.needed]
}

resource "google_firestore_field" "jobs" {
  for_each   = module.settings.fields
  project    = local.project
  database   = local.settings.firestore.database
  collection = each.value.collection
  field      = each.value.field

  # Without any index inside, it takes the field out of all single-field indexes.
  index_config {
    dynamic "indexes" {
      for_each = each.value.indexes
      content {
        order       = indexes.value.order
        query_scope = indexes.value.queryScope
      }
    }
  }

  # Only completed rows have the field: no dead letter ever expires.
  dynamic "ttl_config" {
    for_each = each.value.expirationOffset == null ? [] : [each.value.expirationOffset]
    content {
      expiration_offset = ttl_config.value
    }
  }

  depends_on = [google_project_service.needed]
}

# The files of deploy/firestore as maps, keyed so that an added line moves no other.

locals {
  index_file = jsondecode(file("${path.module}/../../firestore/indexes.json"))
  ttl        = jsondecode(file("${path.module}/../../firestore/ttl.json"))
  ttl_key    = "${local.ttl.collectionGroup} ${local.ttl.fieldPath}"

  field_indexes = merge(
    { (local.ttl_key) = { collection = local.ttl.collectionGroup, field = local.ttl.fieldPath, indexes = [] } },
    {
      for override in local.index_file.fieldOverrides :
      "${override.collectionGroup} ${override.fieldPath}" => {
        collection = override.collectionGroup
        field      = override.fieldPath
        indexes    = override.indexes
      }
    },
  )
}

output "indexes" {
  description = "Composite indexes."
  value = {
    for index in local.index_file.indexes :
    join(" ", concat([index.collectionGroup], [for field in index.fields : "${field.fieldPath} ${field.order}"])) => index
  }
}

output "fields" {
  description = "Single fields: which of their indexes stay, and after how long their documents expire."
  value = {
    for key, field in local.field_indexes :
    key => merge(field, { expirationOffset = key == local.ttl_key ? local.ttl.expirationOffset : null })
  }

  precondition {
    condition     = local.ttl.fieldPath == "completed_at" && can(regex("^[1-9][0-9]{4,}s$", local.ttl.expirationOffset))
    error_message = "Rows expire by completed_at, some days after it: an offset in seconds, as 2592000s."
  }
}

CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE conversation_finalization_jobs (
  job_id TEXT PRIMARY KEY,
  schema_version INTEGER NOT NULL,
  uid TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  finalization_revision INTEGER NOT NULL,
  status TEXT NOT NULL,
  requires_byok INTEGER NOT NULL,
  force_process INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  dispatched_at INTEGER NOT NULL,
  dispatch_generation INTEGER NOT NULL,
  lease_epoch INTEGER NOT NULL,
  claim_id TEXT,
  leased_at INTEGER,
  lease_expires_at INTEGER,
  content_version INTEGER,
  attempt_count INTEGER NOT NULL,
  handovers INTEGER NOT NULL,
  releases INTEGER NOT NULL,
  last_task_retry INTEGER,
  replay_count INTEGER NOT NULL,
  failure_code TEXT,
  outcome TEXT,
  completed_at INTEGER,
  reconcile_after_at INTEGER,
  effects TEXT NOT NULL,
  history TEXT NOT NULL,
  UNIQUE (uid, conversation_id, finalization_revision)
) STRICT, WITHOUT ROWID;

CREATE INDEX jobs_due ON conversation_finalization_jobs (reconcile_after_at)
  WHERE reconcile_after_at IS NOT NULL;

CREATE INDEX jobs_status ON conversation_finalization_jobs (status, created_at);

CREATE TABLE conversations (
  uid TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  status TEXT NOT NULL DEFAULT 'in_progress',
  discarded INTEGER NOT NULL DEFAULT 0,
  deleted INTEGER NOT NULL DEFAULT 0,
  content_version INTEGER NOT NULL DEFAULT 0,
  has_content INTEGER NOT NULL DEFAULT 0,
  photo_count INTEGER NOT NULL DEFAULT 0,
  language TEXT NOT NULL DEFAULT 'en',
  last_segment_at INTEGER,
  finalization_requires_byok INTEGER NOT NULL DEFAULT 0,
  finalization_job_id TEXT,
  finalization_revision INTEGER,
  finalization_wanted_version INTEGER,
  finalization_admitted_at INTEGER,
  calendar_meeting_context TEXT,
  structured TEXT,
  extra TEXT NOT NULL DEFAULT '{}',
  created_at INTEGER NOT NULL,
  PRIMARY KEY (uid, conversation_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE segments (
  uid TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  segment_id TEXT NOT NULL,
  position INTEGER NOT NULL,
  speaker TEXT NOT NULL,
  start_seconds REAL NOT NULL,
  end_seconds REAL NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (uid, conversation_id, segment_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE step_results (
  job_id TEXT NOT NULL,
  step TEXT NOT NULL,
  chunk INTEGER NOT NULL,
  payload TEXT NOT NULL,
  PRIMARY KEY (job_id, step, chunk)
) STRICT, WITHOUT ROWID;

CREATE TABLE memories (
  uid TEXT NOT NULL,
  memory_id TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  text TEXT NOT NULL,
  segment_ids TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (uid, memory_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX memories_conversation ON memories (uid, conversation_id);

CREATE TABLE records (
  kind TEXT NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  version INTEGER NOT NULL,
  PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;

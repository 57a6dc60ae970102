CREATE TABLE IF NOT EXISTS sessions (
    id TEXT PRIMARY KEY, name TEXT, summary TEXT, cwd TEXT, repository TEXT, branch TEXT,
    created_at TEXT, updated_at TEXT
);
CREATE TABLE IF NOT EXISTS turns (
    session_id TEXT, turn_index INTEGER, user_message TEXT, assistant_response TEXT, timestamp TEXT,
    PRIMARY KEY (session_id, turn_index)
);
CREATE TABLE IF NOT EXISTS checkpoints (
    session_id TEXT, checkpoint_number INTEGER, title TEXT, overview TEXT, history TEXT,
    work_done TEXT, technical_details TEXT, important_files TEXT, next_steps TEXT, created_at TEXT,
    PRIMARY KEY (session_id, checkpoint_number)
);
CREATE TABLE IF NOT EXISTS session_files (
    session_id TEXT, file_path TEXT, tool_name TEXT, turn_index INTEGER, first_seen_at TEXT,
    PRIMARY KEY (session_id, file_path)
);
CREATE TABLE IF NOT EXISTS session_refs (
    session_id TEXT, ref_type TEXT, ref_value TEXT, turn_index INTEGER, created_at TEXT,
    PRIMARY KEY (session_id, ref_type, ref_value)
);
CREATE VIRTUAL TABLE IF NOT EXISTS search_index USING fts5 (
    content, session_id UNINDEXED, source_type UNINDEXED, source_id UNINDEXED
);
CREATE TABLE IF NOT EXISTS indexed_logs (session_id TEXT PRIMARY KEY, stamp TEXT);

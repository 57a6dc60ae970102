CREATE TABLE IF NOT EXISTS todos (
    id TEXT PRIMARY KEY,
    title TEXT NOT NULL,
    description TEXT,
    status TEXT NOT NULL DEFAULT 'pending'
        CHECK (status IN ('pending', 'in_progress', 'done', 'blocked')),
    created_at TEXT DEFAULT (datetime('now')),
    updated_at TEXT DEFAULT (datetime('now'))
);
CREATE TABLE IF NOT EXISTS todo_deps (
    todo_id TEXT NOT NULL,
    depends_on TEXT NOT NULL,
    PRIMARY KEY (todo_id, depends_on)
);
CREATE TRIGGER IF NOT EXISTS todos_updated AFTER UPDATE ON todos
WHEN NEW.updated_at IS OLD.updated_at
BEGIN
    UPDATE todos SET updated_at = datetime('now') WHERE id = NEW.id;
END;

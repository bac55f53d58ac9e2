package broker

import "strings"

// The layout of the database. Any SQLite tool reads it:
//
//	queues     one row per queue: its name, the attributes it was given, its tags
//	counters   one row per queue: the ledger, the next free place, the place
//	           below which all is purged. Row 0 adds up the deleted queues.
//	messages   the messages. id is the queue's number << 40 | place. due is set
//	           on messages that were sent with a delay (Unix milliseconds);
//	           origin, received, first, dead and source on those that came from
//	           another queue. size is that of attributes and body in bytes,
//	           sum a checksum of the content.
//	receipts   what is known of messages that were received and are still here:
//	           how often, first when, hidden until when; unread is how many of
//	           the receives do not count (NULL where version 3 wrote it)
//	dedup      deduplication ids of the last five minutes
//	departed   names of queues deleted in the last minute
//	garbage    ranges of purged messages that wait to be removed
//	meta       the secret behind ids and receipt handles, the epoch, the version
//	leases     who is in charge, by the name of what
//	fires      the scheduled runs of the last 30 days, and the message of each.
//	           at is the scheduled time, recorded that of the row, path where
//	           on the app the message goes (NULL where version 2 wrote it).
//	tasks      the scheduled time of each periodic task's last run, and the
//	           schedule that it was accounted for by (NULL: not known)
//	paused     the paused periodic tasks
const schema = `
CREATE TABLE meta (
	name TEXT PRIMARY KEY, value BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE queues (
	number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
	attributes TEXT NOT NULL, tags TEXT NOT NULL,
	created INTEGER NOT NULL, modified INTEGER NOT NULL, purged_at INTEGER NOT NULL
);
CREATE TABLE counters (
	queue INTEGER PRIMARY KEY, next INTEGER NOT NULL, floor INTEGER NOT NULL,
	sent INTEGER NOT NULL, done INTEGER NOT NULL, dead_lettered INTEGER NOT NULL,
	moved_in INTEGER NOT NULL, moved_out INTEGER NOT NULL,
	expired INTEGER NOT NULL, purged INTEGER NOT NULL
);
CREATE TABLE messages (
	id INTEGER PRIMARY KEY, sent INTEGER NOT NULL, sum INTEGER NOT NULL, size INTEGER NOT NULL,
	due INTEGER, origin INTEGER, received INTEGER, first INTEGER, dead INTEGER, source TEXT,
	group_id TEXT, dedup_id TEXT, trace TEXT, attributes BLOB, body TEXT NOT NULL
);
CREATE INDEX delayed ON messages (id >> 40, due) WHERE due IS NOT NULL;
CREATE INDEX moved ON messages (origin) WHERE origin IS NOT NULL;
CREATE INDEX moved_sent ON messages (id >> 40, sent) WHERE origin IS NOT NULL;
CREATE TABLE receipts (
	id INTEGER PRIMARY KEY, count INTEGER NOT NULL, first INTEGER NOT NULL,
	received_at INTEGER NOT NULL, until INTEGER NOT NULL, epoch INTEGER NOT NULL
);
CREATE TABLE dedup (
	queue INTEGER NOT NULL, dedup_id TEXT NOT NULL, group_id TEXT NOT NULL,
	message INTEGER NOT NULL, expires INTEGER NOT NULL,
	PRIMARY KEY (queue, dedup_id, group_id)
) WITHOUT ROWID;
CREATE INDEX dedup_expires ON dedup (expires);
CREATE TABLE departed (
	name TEXT PRIMARY KEY, at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE garbage (
	low INTEGER PRIMARY KEY, high INTEGER NOT NULL
);
`

// registrySchema is what version 2 adds.
const registrySchema = `
CREATE TABLE leases (
	name TEXT PRIMARY KEY, version TEXT NOT NULL, term INTEGER NOT NULL, owner TEXT NOT NULL,
	duration INTEGER NOT NULL, released INTEGER NOT NULL, data TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE fires (
	id TEXT PRIMARY KEY, task TEXT NOT NULL, queue TEXT NOT NULL, at INTEGER NOT NULL, term INTEGER NOT NULL,
	recorded INTEGER NOT NULL, message TEXT NOT NULL, sequence TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX fires_recorded ON fires (recorded);
CREATE TABLE tasks (
	task TEXT PRIMARY KEY, last INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE paused (
	task TEXT PRIMARY KEY, reason TEXT NOT NULL
) WITHOUT ROWID;
`

// thirdSchema is what version 3 adds.
const thirdSchema = `
ALTER TABLE fires ADD COLUMN path TEXT;
ALTER TABLE tasks ADD COLUMN schedule TEXT;
`

// fourthSchema is what version 4 adds.
const fourthSchema = `
ALTER TABLE receipts ADD COLUMN unread INTEGER;
`

// schemaVersion is kept in PRAGMA user_version.
const schemaVersion = 4

// schemaSince returns what a file of a version lacks.
func schemaSince(version int64) string {
	return strings.Join([]string{schema, registrySchema, thirdSchema, fourthSchema}[version:], "")
}

// Package cloud creates, lists and deletes an environment's AWS resources.
//
// Without a configured queue, an environment on Amazon SQS uses its own, like an Elastic Beanstalk worker environment.
// [EnsureQueue] creates it and its dead-letter queue at startup. An [Inventory] lists all AWS resources that the
// settings use, and deletes those that the environment owns.
//
//	settings ── EnsureQueue ──> queue, dead-letter queue    (at each start)
//	settings ── Inventory ────> [Resource, ...]             (describe, terminate)
//	                 └─ Delete ──> tagged resources         (terminate)
//
// Every resource that tendril creates has the tag tendril:environment with the environment's name. Resources without
// it, or with another name, are never changed or deleted. The tag is read again immediately before a deletion. A
// registry table that contains another environment's lease is kept.
//
// To support another service, implement source and add it to [Open] in the order of deletion: resources that refer to
// others come first.
package cloud

// Package cloud creates, lists and deletes an environment's AWS resources.
//
// Without a configured queue, an environment on Amazon SQS uses a queue of its own, like an Elastic Beanstalk worker
// environment. [EnsureQueue] creates it and its dead-letter queue at startup. An [Inventory] lists all AWS resources
// that the settings use, and deletes those that the environment owns.
//
//	settings ── EnsureQueue ──> queue, dead-letter queue    (at each start)
//	settings ── Inventory ────> [Resource, ...]             (describe, terminate)
//	                 └─ Delete ──> tagged resources         (terminate)
//
// # Ownership
//
// Every resource that tendril creates has the tag tendril:environment with the environment's name. Only the tag
// proves ownership: a resource without it, or with another environment's name, is never changed or deleted. The tag
// is read again immediately before a deletion. A registry table that contains another environment's lease is kept.
//
// # Adding a service
//
// A service implements source. [Open] adds sources in the order of deletion: resources that refer to others come
// first.
package cloud

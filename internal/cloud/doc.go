// Package cloud creates, lists and deletes an environment's AWS resources.
//
//	settings ── EnsureQueue ──> queue, dead-letter queue    (at each start)
//	settings ── Inventory ────> [Resource, ...]             (describe, terminate)
//	                 └─ Delete ──> tagged resources         (terminate)
//
// Every resource that tendril creates has the tag tendril:environment with the environment's name. Other resources are
// never changed or deleted. The tag is read again immediately before a deletion. A registry table that contains another
// environment's lease is kept.
//
// To support another service, add a source to [Open] in the order of deletion: resources that refer to others come
// first.
package cloud

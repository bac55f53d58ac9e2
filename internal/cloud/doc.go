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
// [Inventory.List] returns resources in the order of deletion: those that refer to others come first.
package cloud

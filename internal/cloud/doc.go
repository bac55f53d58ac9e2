// Package cloud creates, lists and deletes what an environment has on AWS.
//
// Where no queue is named, an environment on Amazon SQS has a queue of its own, as a worker
// environment of Elastic Beanstalk does. [EnsureQueue] creates it with its dead-letter queue
// when the environment starts. An [Inventory] lists every resource on AWS that the settings
// lead to, and deletes those that belong to the environment.
//
//	settings ── EnsureQueue ──> queue, dead-letter queue    (at each start)
//	settings ── Inventory ────> [Resource, ...]             (describe, terminate)
//	                 └─ Delete ──> what has the tag         (terminate)
//
// # Ownership
//
// Everything that tendril creates has the tag tendril:environment with the environment's name.
// The tag is the only proof of ownership: a resource without it, or with the name of another
// environment, is neither changed nor deleted, whatever its name is. The tag is read again
// directly before a deletion. A registry table in which another environment has a lease is
// kept.
//
// # Add a service
//
// A service is a source: it lists resources, and deletes one of them. [Open] puts the sources
// together, in the order of deletion: what points to something else goes first.
package cloud

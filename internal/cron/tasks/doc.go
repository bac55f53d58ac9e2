// Package tasks runs the periodic tasks of one environment.
//
// Package periodic knows when tasks are due, and package leader elects the instance that
// enqueues them. This package connects the two with a file, a registry and a queue:
//
//	cron.yaml --> File --> Manager --> periodic.Scheduler --> registry --> queue
//	                          |              ^                   ^
//	                          |              | term              | leases, runs, pauses
//	                          '---------> leader.Elector --------'
//
// # The registry
//
// Instances agree in a registry on the leader, on the scheduled runs that were enqueued, and
// on the tasks that are paused. Which one is used follows from the settings and the queue:
//
//   - The embedded queue: the broker's own file. A run and its message are one transaction.
//   - A queue that another tendril serves: the same, over that server's endpoint. A server
//     that does not answer yet is asked again, and tasks begin when it does.
//   - A DynamoDB table, where one is named: a run is claimed, sent and marked.
//   - The memory of this process, where it is declared the only instance.
//   - None, where a leader would be needed and cannot be elected: tasks are listed and not
//     scheduled, and the reason is logged and shown.
//
// # What happens to the file
//
// The file is read before anything starts, so that a bad one stops the start. Afterwards
// [Manager.Reload], a new version of the app and the watch of the file read it again; a bad
// file changes nothing then. Tasks that come while the environment runs count from that
// moment: missed runs from before are not caught up.
//
// # Deliveries
//
// The middleware of deliveries reports each delivery of a run to [Manager.Account], for the
// history and for tasks whose runs must not overlap. Where only runs that the registry
// has are trusted, it asks [Manager.Known].
package tasks

// Package tasks runs the periodic tasks of one environment.
//
// Package periodic determines when tasks are due, and package leader elects the instance that enqueues them. This
// package connects them with a file, a registry and a queue:
//
//	cron.yaml --> File --> Manager --> periodic.Scheduler --> registry --> queue
//	                          |              ^                   ^
//	                          |              | term              | leases, runs, pauses
//	                          '---------> leader.Elector --------'
//
// Instances share the leader, the enqueued runs and the paused tasks in a registry:
//
//   - Embedded queue: the broker's database. A run and its message are one transaction.
//   - Queue of another tendril: the same, over that server's endpoint. If the server does not respond, tasks start when
//     it does.
//   - DynamoDB table, if configured: a run is announced, sent and settled.
//   - Memory, if this is declared the only instance.
//   - Otherwise no leader can be elected, and tasks are not scheduled.
//
// An invalid file prevents startup, and later changes nothing. Tasks added at run time count from that moment: earlier
// runs are not caught up.
package tasks

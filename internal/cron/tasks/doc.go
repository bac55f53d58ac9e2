// Package tasks runs the periodic tasks of one environment.
//
//	cron.yaml --> File --> Manager --> periodic.Scheduler --> registry --> queue
//	                          |              ^                   ^
//	                          |              | term              | leases, runs, pauses
//	                          '---------> leader.Elector --------'
//
// The registry is one of:
//
//   - Embedded queue: the broker's database. A run and its message are one transaction.
//   - Queue of another tendril: the same, over that server's endpoint. Tasks start when the server responds.
//   - DynamoDB table, if configured: a run is announced, sent and settled.
//   - Memory, if this is declared the only instance and there is no other registry.
//
// Without a registry, no leader can be elected, and tasks are not scheduled.
package tasks

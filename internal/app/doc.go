// Package app runs the app: its replicas, their deliveries and its deployments.
//
//	                       the admitted and ready replica with the fewest deliveries
//	deliveries --> Route ---+--> replica web    version 1, serving
//	                        +--> replica web-2  version 1, serving
//	                        |    replica web-3  version 2, held until all of it is ready
//	                        '--> replica web-4  for quarantined messages, one at a time
//
//	deploy: start version 2 beside version 1 -> ready? -- no --> stop it again: rolled back
//	                                              '- yes -> admit 2, retire 1 (drain), stop 1
//	scale:  out: start, ready, admit.  in: retire (drain), stop.
//
// The balancer knows which replicas take deliveries, and a [Route] gives each message of a
// queue to one of them. The replica set starts and stops replicas, and changes the balancer
// in the right order. [App] opens new versions, runs their hooks and records how far
// a deployment is. The gate opens the workers' gates while a replica is ready.
//
// # Poison messages
//
// When a replica crashes, each message that it had in work may be the cause. Delivered
// together again they would crash it again, and after enough receives harmless messages
// would be dead-lettered beside the poison message.
//
//	            the replica crashed with      delivered alone, and
//	            several messages in work      the replica crashed
//	harmless -------------------------> quarantined ----------> poison
//	    ^                                    |                     |
//	    '---- delivered alone, survived -----'                     | stays quarantined until
//	                                                               v its queue dead-letters it
//
// A quarantined message is delivered alone, to a replica that has no other message. A crash
// then points at exactly one message, and the other replicas keep working. When ten different
// messages in a row crash the app, and it survives none in between, the app itself is broken:
// [PoisonStatus] says so, and the app is restarted as one that crashes by itself.
//
// # Invariants
//
//   - A replica is stopped only when nothing is in work on it, or when its drain
//     took longer than its limit.
//   - At most one change (start, scale, restart, deploy) runs at a time; a second one is
//     refused with [ErrBusy] rather than queued. But a deployment waits for nothing
//     that only changes the size: growth is given up for it. Retired replicas drain
//     beside any change, those of several versions at once.
//   - Deliveries move to a version only while all of its replicas are ready together
//     and none was given up; that is checked again after the old helpers ended.
//   - A deployment that fails leaves the replicas of the old version serving, and
//     none of its own running.
//   - Helpers, the processes that take no deliveries, run once per version, and
//     not twice at a time: the old ones end before the new ones begin.
//   - A message is called poison only when nothing else was in work on the replica
//     that crashed. One that was delivered alone and survived leaves the quarantine,
//     whatever the answer was.
//   - Memory is bounded: at most 10,000 messages are quarantined. Beyond that the
//     oldest is forgotten, and detected again if it crashes the app again.
package app

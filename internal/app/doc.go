// Package app runs the app: its replicas, their deliveries and its deployments.
//
//	                       the admitted and ready replica with the fewest deliveries
//	deliveries --> Route ---+--> replica web    version 1, serving
//	                        +--> replica web-2  version 1, serving
//	                        |    replica web-3  version 2, held until all of it is ready
//	                        '--> replica web-4  for quarantined messages, one at a time
//
// When a replica crashes, the messages that it had in flight are quarantined and delivered alone to a separate replica,
// so that the next crash identifies one message. A message that survives leaves the quarantine.
//
// # Invariants
//
//   - A replica is stopped only when it has no deliveries, or when draining exceeded its limit.
//   - Only one change (start, scale, restart, deploy) runs at a time; others fail with [ErrBusy], except that a
//     deployment waits for a start, and cancels a change of size or a restart.
//   - Deliveries switch to a version only while all of its replicas are ready at the same time.
//   - A failed deployment leaves the previous replicas serving and none of its own running.
//   - Helpers, the processes without deliveries, run once per version.
//   - At most 10,000 messages are quarantined. Beyond that, the oldest is forgotten.
package app

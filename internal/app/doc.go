// Package app runs the app: its replicas, their deliveries and its deployments.
//
//	                       the admitted and ready replica with the fewest deliveries
//	deliveries --> Route ---+--> replica web    version 1, serving
//	                        +--> replica web-2  version 1, serving
//	                        |    replica web-3  version 2, held until all of its replicas are ready
//	                        '--> replica web-4  for quarantined messages, one at a time
//
// When a replica crashes, the messages that it had in flight are quarantined and delivered alone to a separate replica,
// so that the next crash identifies one message. A message that survives leaves the quarantine.
//
// # Invariants
//
//   - A serving replica is stopped only if it has no deliveries, draining exceeds its limit, or the environment stops.
//   - Only one change (start, scale, restart, deploy) runs at a time.
//   - A deployment switches deliveries only while all of the new version's replicas are ready at the same time.
//   - A deployment that fails before the switch leaves the previous replicas serving and none of its own running.
//   - Each helper, a process without deliveries, runs only once at a time, even during a deployment.
//   - At most 10,000 messages are quarantined. Beyond that, the oldest is forgotten.
package app

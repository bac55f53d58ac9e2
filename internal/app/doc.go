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
// When a replica crashes, any message it had in flight may be the cause. To keep harmless messages from being
// dead-lettered along with it, all of them are quarantined and delivered alone, to a replica of their own. A crash
// then identifies exactly one message, and the other replicas keep working. A message that survives leaves the
// quarantine. If ten different messages in a row crash the app, the app itself is broken: [PoisonStatus] reports it,
// and the app is restarted like one that crashes without a message.
//
// # Invariants
//
//   - A replica is stopped only when it has no deliveries, or when draining exceeded its limit.
//   - Only one change (start, scale, restart, deploy) runs at a time; others fail with [ErrBusy]. But a deployment
//     waits for a start, and cancels a change of size or a restart.
//   - Deliveries switch to a version only while all of its replicas are ready at the same time.
//   - A failed deployment leaves the previous replicas serving and none of its own running.
//   - Helpers, the processes without deliveries, run once per version. The previous ones exit before the next ones
//     start.
//   - At most 10,000 messages are quarantined. Beyond that the oldest is forgotten.
package app

// Package rollout runs copies of the app side by side and moves deliveries
// between them.
//
//	                     Acquire: the ready copy with the least in work
//	deliveries --> Router ------+--> Member 5000   version 1, serving
//	                            +--> Member 34561  version 1, serving
//	                            '-x  Member 40123  version 2, held until all of it is ready
//
//	Deploy: start version 2 beside version 1 -> ready? -- no --> stop it again: rolled back
//	                                              '- yes -> admit 2, retire 1 (drain), stop 1
//	Scale:  out: start, ready, admit.  in: retire (drain), stop.
//
// A [Router] knows who may be given work; a [Manager] starts and stops copies
// through a function that it is given, and changes the Router in the right order.
//
// # Invariants
//
//   - A delivery goes to a member that is admitted and ready at that moment, and
//     a member is stopped only when nothing is in work on it, or when its drain
//     took longer than its limit.
//   - At most one change (start, scale, deploy) runs at a time; a second one is
//     refused with [ErrBusy] rather than queued. But a deployment waits for nobody
//     that only changes the size: growth is given up for it, and what a scale-in
//     took the work from drains beside it.
//   - Deliveries move to a version only while all of its copies are ready together
//     and none was given up; that is looked at again after the old helpers ended.
//   - A deployment that fails leaves the members that served before serving, and
//     none of its own running.
//   - Helpers, the processes that take no deliveries, run once per version, and
//     not twice at a time: the old ones end before the new ones begin.
//
// # What it does not do
//
// It knows no processes and no HTTP. A copy that dies is started again by
// whoever runs it; here it is not ready for that while.
package rollout

// Package health turns what the parts report into one status, one colour and its
// causes.
//
// The words are those of Elastic Beanstalk's enhanced health: its statuses,
// four colours, and causes as sentences.
//
//	deliveries ──> window ─┐
//	Host (CPU, disk ...) ──┤            ┌───────────┐          ┌───────────┐
//	app, queue, leader ────┴─> inputs ─>│   judge   │─ Report ─>│  steady   │─> Report
//	                              │     │ the rules │ as of now │ three in  │   shown
//	                              │     └───────────┘           │ a minute  │
//	                              └──> Live, Ready, Started     └───────────┘
//	                                   for the probes of a supervisor
//
// A [Monitor] does that every ten seconds. Each rule gives a status and a cause, and
// the worst status is the report's. It does not flap: it becomes worse only when three
// checks within a minute say so, better only when none has said otherwise for a minute.
// What a person did (a pause, a drain, a deployment) and what is certain (a process given
// up, access denied) counts at once.
//
//	status     colour  meaning                                exit code
//	Ok         Green   nothing to do                           0
//	Info       Green   nothing to do; something to know        0
//	Pending    Grey    it starts                               3
//	No Data    Grey    nothing was heard for a minute          3
//	Warning    Yellow  some work fails or waits                1
//	Degraded   Red     much of it                              2
//	Severe     Red     nearly all of it                        2
//
// The exit codes are those that monitoring systems expect of a check.
//
// # Invariants
//
//   - A figure that is not known raises no cause; none is made up.
//   - A report that is not Ok has at least one cause.
//   - A probe never fails for what a restart or another instance would not fix:
//     a queue that does not answer makes all instances look ill, so that none is
//     taken out for it.
//   - When the rounds end, the status is No Data, with the time since the last one.
//
// It asks nobody but the sources of [Options], does not look at other instances, and
// counts deliveries, not messages: one message that fails ten times is ten failures.
package health

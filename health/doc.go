// Package health turns what the parts report into one status, one colour and its
// causes.
//
// The words are those of Elastic Beanstalk's enhanced health: seven statuses,
// four colours, and causes as sentences.
//
//	deliveries ──> Window ─┐
//	Host (CPU, disk ...) ──┤            ┌───────────┐          ┌───────────┐
//	app, queue, leader ────┴─> Inputs ─>│   Judge   │─ Report ─>│  Steady   │─> Report
//	                              │     │ the rules │ as of now │ three in  │   shown
//	                              │     └───────────┘           │ a minute  │
//	                              └──> Live, Ready, Startup     └───────────┘
//	                                   for the probes of a supervisor
//
// [Judge] is a table of rules over one reading of [Inputs]; each rule gives a
// status and a cause, and the worst status is the report's. [Steady] keeps it
// from flapping: worse only when three checks within a minute say so, better
// only when none has said otherwise for a minute. What a person did (a pause, a
// drain, a deployment) and what is certain (a process given up, access denied)
// counts at once.
//
//	status     colour  meaning                                    number  exit code
//	Ok         Green   nothing to do                               0       0
//	Info       Green   nothing to do; something to know            1       0
//	Unknown    Grey    not enough is known yet                     5       3
//	Pending    Grey    it starts                                   -       3
//	No Data    Grey    nothing was heard for a minute             10       3
//	Warning    Yellow  some work fails or waits                   15       1
//	Degraded   Red     much of it                                 20       2
//	Severe     Red     nearly all of it                           25       2
//
// The number is what Elastic Beanstalk publishes as EnvironmentHealth. The exit
// codes are those that monitoring systems expect of a check.
//
// # Invariants
//
//   - Judge, Live, Ready and Startup are functions of what they are given.
//   - A figure that is not known raises no cause; none is made up.
//   - A report that is not Ok has at least one cause.
//   - A probe never fails for what a restart or another instance would not fix:
//     a queue that does not answer makes all instances look ill, so that none is
//     taken out for it, except one that has never reached it.
//
// # When something fails
//
// When the parts cannot be asked the status is No Data, with the time since the
// last reading. What this system cannot measure is a figure that is not known.
//
// # What it does not do
//
// It asks nobody: whoever calls it brings the inputs. It does not look at other
// instances. It counts deliveries, not messages: one message that fails ten
// times is ten failures.
package health

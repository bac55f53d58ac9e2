// Package health turns the reports of all parts into one status, one color and its causes.
//
// It follows Elastic Beanstalk's enhanced health.
//
//	deliveries ──> window ─┐
//	Host (CPU, disk ...) ──┤            ┌───────────┐          ┌───────────┐
//	app, queue, leader ────┴─> inputs ─>│   judge   │─ Report ─>│  steady   │─> Report
//	                              │     │ the rules │ current   │ three in  │   shown
//	                              │     └───────────┘           │ a minute  │
//	                              └──> Live, Ready, Started     └───────────┘
//	                                   for the probes of a supervisor
//
// The worst cause wins. To avoid flapping, a measured cause such as memory usage counts only after three bad checks
// within a minute; other causes, such as failed deliveries or denied access, count at once. The status becomes better
// only after a minute without the cause.
//
//	status     color   meaning                                exit code
//	Ok         Green   nothing to do                           0
//	Info       Green   nothing to do; something to know        0
//	Pending    Grey    starting                                3
//	No Data    Grey    no data for a minute                    3
//	Warning    Yellow  some work fails or waits                1
//	Degraded   Red     much of it                              2
//	Severe     Red     nearly all of it                        2
//
// # Invariants
//
//   - Unknown values raise no cause.
//   - A report other than Ok has at least one cause.
//   - A probe fails only for problems that a restart or another instance can fix, so not for an unreachable queue.
package health

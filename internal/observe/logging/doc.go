// Package logging prints what happens: for a person at a terminal, as JSON, or in the format of aws-sqsd.
//
// A [Logger] is a [log/slog.Logger] with three kinds of lines that are no log
// events on a terminal: one for each settled message ([Logger.Settled]), those that
// the app writes ([Logger.AppOutput]), and the banner of the start ([Logger.Banner]).
//
//	12:00:00 · receiving started  queue=jobs
//	12:00:01 ✗ 500   12ms  4f0c2b1e-...  attempt 2: status 500 "no such order"; again in 5m0s
//	12:00:02 ! changing the visibility failed  queue=jobs message_id=4f0c2b1e-... err="..."
//	web.1 | listening on port 8080
//
// On a terminal an event shows its time, its message and its attributes. The
// component is left out, and the hint comes last. Everything that others wrote is made
// printable by package terminal. Elsewhere each line is one JSON object with the same
// keys. The format of aws-sqsd is the terminal's, but for deliveries.
//
// Messages are constant; what varies is in attributes with the same keys everywhere:
// component, queue, message_id, task, attempt, outcome, duration_ms, reason, err, hint.
// A terminal shows milliseconds as a duration: retry_in_ms=1500 becomes retry_in=1.5s.
//
// Lines about deliveries are sampled: of each outcome at most so many are printed in
// a second, and the others are counted. [Logger.ReportOmitted] logs the counts.
//
// [Logger.Worker], [Logger.Broker], [Logger.AWS] and [Logger.Limiter] are listeners that
// log what these packages report.
package logging

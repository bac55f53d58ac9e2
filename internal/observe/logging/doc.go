// Package logging prints events and deliveries as text for a terminal, as JSON, or in the format of aws-sqsd.
//
//	12:00:00 · receiving started  queue=jobs
//	12:00:01 ✗ 500   12ms  4f0c2b1e-...  jobs  attempt 2: status 500 "no such order"; next in 5m0s
//	12:00:02 ! changing the visibility failed  queue=jobs message_id=4f0c2b1e-... err="..."
//	web.1 | listening on port 8080
//
// Messages are constant. Attributes use the keys component, queue, message_id, task, attempt, outcome, duration_ms,
// reason, err and hint.
//
// Only a limited number of lines about deliveries is printed per second and outcome.
package logging

// Package environment builds every part of a worker environment, starts them in order and stops them in reverse.
//
// It is the only package that knows all others. [New] takes checked settings,
// [Environment.Run] starts the environment, waits until it is told to stop or a
// part fails, and stops it again:
//
//	New ── Start: queues ── console ── workers ── app ── periodic tasks ── scaling
//	                                                                          |
//	       Stop:  queues <─ console <─ workers <─ app <─ periodic tasks <─────'
//
// environment.go holds that order with a reason for each step. A part that was
// started puts its own end on a stack (steps.go), and a stop takes the stack
// down, so that a start that fails half way stops what it began.
//
// # A stop
//
// A stop is a drain: nothing new is received, deliveries in work finish, what was
// never posted is given back, and the app gets TERM and its grace. It is bounded by
// the settings ShutdownTimeout and AppGrace; a second signal cuts it short.
//
// # The way of a message
//
// A pipeline (pipeline.go) is one queue with its worker, which hands each message to the
// stages of package delivery, which take it to its target (target.go): an app over
// HTTP, replicas of it that run here (route.go, copy.go), or a Lambda function.
//
// # What else is here
//
// Deployments (deploy.go), the registry of periodic tasks (tasks.go, registry.go),
// what health is judged by (symptoms.go), the lines that are printed (report.go) and
// the console's functions (show.go, status.go).
package environment

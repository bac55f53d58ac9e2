// Package environment builds every part of a worker environment, starts them in order and stops them in reverse.
//
//	New ── Start: queues ── console ── app ── workers ── periodic tasks ── scaling
//	                                                                          |
//	       Stop:  queues <─ console <─ app <─ workers <─ periodic tasks <─────'
//
// environment.go lists the steps with their reasons. Each started part pushes its shutdown onto a stack (lifecycle.go),
// which a stop or a failed startup unwinds. A pipeline is a queue with its worker and target: an app over HTTP,
// replicas of the app, or a function here or on AWS Lambda.
//
// [Environment] has one component per job:
//
//	queues    opens the queues, and serves the embedded ones
//	work      holds a pipeline per queue
//	programs  runs the app and functions
//	changes   applies new versions and settings
//	cron      runs the periodic tasks
//	scale     follows the load, and protects this instance while it works
//	observe   provides health, metrics, charts and events
//	members   shares the record of this instance and reads the others'
//	desired   applies the state set for all instances
//	rollouts  deploys versions to all instances
//	systemd   notifies systemd
//	instance  makes the environment discoverable for other commands
//
// Components share the current settings, an immutable revision that a reload replaces as a whole.
package environment

// Package environment builds every part of a worker environment, starts them in order and stops them in reverse.
//
// It is the only package that imports all others. [New] takes validated settings. [Environment.Run] starts the
// environment, waits for a stop or a failure, and stops it:
//
//	New ── Start: queues ── console ── workers ── app ── periodic tasks ── scaling
//	                                                                          |
//	       Stop:  queues <─ console <─ workers <─ app <─ periodic tasks <─────'
//
// environment.go lists the steps in order, with reasons. Each started part pushes its shutdown onto a stack
// (lifecycle.go), which a stop or a failed startup unwinds. A stop is a drain; a second signal cuts it short.
//
// A pipeline (pipeline.go) is a queue (workqueue.go) with its worker. The worker passes each message through the
// stages of package delivery to the target (target.go): an app over HTTP, the replicas run by package app, or a
// Lambda function.
//
// [Environment] has one component per job, with its dependencies as named fields:
//
//	queues    opens the queues, embedded and on Amazon SQS, and serves the embedded ones
//	work      holds a pipeline per queue
//	programs  runs the app and functions, and sets their variables
//	changes   applies new versions and settings
//	cron      runs the periodic tasks
//	scale     follows the load, and protects this instance while it works
//	observe   provides health, metrics, charts and events
//	members   shares the record of this instance and reads the others'
//	desired   applies the state set for all instances
//	rollouts  deploys versions to all instances
//	systemd   notifies systemd
//	instance  makes the environment discoverable for other commands, and opens its console
//
// Components share the options, the lifecycle and the current settings, an immutable revision (settings.go) that
// a reload replaces as a whole.
package environment

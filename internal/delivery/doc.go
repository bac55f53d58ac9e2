// Package delivery passes a worker's messages to their target through a chain of stages.
//
// A worker delivers one message, or a batch for a Lambda function. Both pass through the same stages (stages.go):
//
//	worker
//	  |   track          counts deliveries in flight, for scale-in protection
//	  |   recognizeRuns  parses scheduled runs and checks them with the registry
//	  |   unwrap         unwraps SNS envelopes and fetches payloads from S3
//	  |   bookkeep       records the start and result of scheduled runs
//	  |   announce       reports the start
//	  |   trace          creates the spans
//	  |   send           sends the messages
//	  v
//	Target: [Remote], the replicas of package app, or a function (deliver.Lambda)
//
// A stage wraps the next one. It sets the results of messages that it cannot pass on and, on a FIFO queue, holds back
// later messages of their groups. [ForWorker] builds the chain without the stages that are not needed.
//
// # Scheduled runs
//
// A scheduled run is parsed once and then travels as [queue.Message].Run. Named runs are not unwrapped or fetched,
// because tendril created them. If only the registry is trusted, a message that claims to be an unknown run becomes
// an ordinary message: it loses its run attributes and is posted to the app's own path.
//
// # Payloads in S3
//
// The payloads of one delivery must be fetched within 30 seconds or the delivery's deadline, whichever is shorter. If
// S3 does not respond, the message is postponed, which is not an attempt. If the object is missing or access is
// denied, the delivery fails.
//
// # Targets
//
// A [Remote] is an app that tendril does not run. Changed settings replace its connections; deliveries in flight
// finish on the previous ones. [Functions] are Lambda functions on this machine; queues with the same command share
// one.
package delivery

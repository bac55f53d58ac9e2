// Package delivery passes a worker's messages to their target through a chain of stages.
//
//	worker
//	  |   track          counts deliveries in flight, for scale-in protection
//	  |   recognizeRuns  parses scheduled runs and checks them with the registry
//	  |   unwrap         unwraps SNS envelopes and fetches payloads from S3
//	  |   recordRuns     records the start and result of scheduled runs
//	  |   announce       reports the start
//	  |   trace          creates the spans
//	  |   send           sends the messages
//	  v
//	Target: [Remote], the replicas of package app, or a function (deliver.Lambda)
//
// Each stage sets the results of messages that it cannot pass on and, on a FIFO queue, holds back later messages of
// their groups.
//
// If only registered runs are trusted, another one becomes an ordinary message: it loses its run attributes and is
// posted to the app's own path.
//
// If S3 does not respond in time, the message is postponed, without an attempt. If the object is missing or access is
// denied, the delivery fails.
package delivery

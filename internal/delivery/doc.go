// Package delivery passes a worker's messages to their target through a chain of stages.
//
//	worker
//	  |   track          counts deliveries in flight, for scale-in protection
//	  |   recognizeRuns  parses scheduled runs and checks them with the registry
//	  |   unwrap         unwraps SNS envelopes and fetches payloads from S3
//	  |   unlessPaused   postpones messages while sending is paused
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
// If only registered runs are trusted ([Options].Known), a message that claims to be another run becomes an ordinary
// one: it loses its run attributes and is posted to the app's own path.
//
// If S3 is unreachable or throttles requests, the message is postponed without using up an attempt. Otherwise, a
// payload that cannot be fetched is a failed delivery.
package delivery

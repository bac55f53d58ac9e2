// Package delivery takes the messages of a worker to their target, through one stage after the other.
//
// A worker hands over one message, or a batch for a Lambda function. Both go through
// the same stages (stages.go):
//
//	worker
//	  |   track          counts deliveries in flight, for scale-in protection
//	  |   recognizeRuns  recognizes scheduled runs, and asks the registry about them
//	  |   unwrap         takes messages out of SNS envelopes, gets payloads from S3
//	  |   bookkeep       notes the start and the end of scheduled runs
//	  |   announce       logs the start
//	  |   trace          makes the spans
//	  |   send           hands the messages over
//	  v
//	Target: [Remote], the replicas of package app, or a function (deliver.Lambda)
//
// A stage is a function around the next one. It sets the result of a message that it
// cannot pass on, and passes on the others. On a FIFO queue it also holds back the later
// messages of the same group. [ForWorker] puts the stages together; those that have
// nothing to do are left out.
//
// # Scheduled runs
//
// A message is parsed as a scheduled run once. The run travels with it as
// [queue.Message].Run. A named run is neither unwrapped nor fetched: tendril itself
// wrote it. Where only the registry is trusted, a message that claims to be a run and
// is not known there becomes an ordinary message: it loses the attributes of a run,
// and is posted to the app's own path.
//
// # Payloads in S3
//
// All payloads of one delivery have 30 seconds together, or the deadline of the
// delivery if that is shorter. When S3 does not answer, the message is postponed: that
// is not an attempt. When the object is missing or not allowed, the delivery failed.
//
// # Targets
//
// A [Remote] is an app that others run. Its connections are replaced when settings
// change; deliveries under way end on the old ones. [Functions] are the Lambda
// functions that run on this machine; queues with the same command share one.
package delivery

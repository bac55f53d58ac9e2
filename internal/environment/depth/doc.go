// Package depth counts what waits in the queues.
//
// Health, scaling, metrics and the console all want to know how many messages
// wait, how old the oldest is, and how many are in the dead-letter queue. A
// [Counter] answers all of them from one place:
//
//	embedded queue ── its counters, read when somebody asks ──┐
//	Amazon SQS ────── GetQueueAttributes, once a minute ──────┤──> Reading
//	worker ────────── messages that wait for a free slot ─────┘
//
// Each call of Amazon SQS costs money, so a [Counter] makes one for each queue per
// minute, however many ask, and a reading that is older than three minutes is not
// returned any more. The call also returns the redrive policy, which says how often
// the queue delivers a message before it dead-letters it: the worker is given that
// number, because the policy may change while it runs.
//
// Amazon SQS does not report the age of a message. The age of the oldest is then
// estimated from the messages whose delivery has begun lately, and is unknown when
// there were none.
//
// A queue that does not answer keeps its last reading. A dead-letter queue that may
// not be read is asked only once.
package depth

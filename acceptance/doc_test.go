// Package acceptance runs the built program through what a user's trust hangs
// on: kill -9 of the queue and of the whole environment at random moments, a
// stop under load, and the delivery contract row by row against an SQS
// endpoint. Real processes, real sockets, the real AWS SDK as the producer.
//
// With -short fewer kills are done; the figures in docs/performance.md are from
// full runs. With TENDRIL_NIGHTLY each fault has its long form, and what has
// passed is kept: see docs/reliability.md.
package acceptance

// Package acceptance tests the built program with real processes, real sockets and the AWS SDK as producer: kill -9
// of the queue and of whole environments at random moments, stops under load, and the delivery contract row by row
// against an SQS endpoint.
//
// -short reduces the number of kills; the figures in docs/performance.md are from full runs. With TENDRIL_NIGHTLY, each
// fault has its long form, and results are kept: see docs/reliability.md.
package acceptance

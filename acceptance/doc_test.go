// Package acceptance tests the built program with real processes, real sockets and the AWS SDK as producer: kill -9
// of the queue and of whole environments at random moments, stops under load, and the delivery contract row by row
// against an SQS endpoint.
//
// -short reduces the number of kills. TENDRIL_NIGHTLY selects the long form of each fault; see docs/reliability.md.
package acceptance

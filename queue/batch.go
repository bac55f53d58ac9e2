package queue

// MaxBatch is the maximum number of entries in one request (SQS: 10).
const MaxBatch = 10

// MaxMessageSize is the most that a message, and all messages of a batch together, may
// contain in bytes: bodies, and names, types and values of attributes (SQS: 1 MiB).
const MaxMessageSize = 1 << 20

// CheckEntries rejects a batch request without entries, and one with too many. kind is the
// name of an entry in the model of SQS.
func CheckEntries(n int, kind string) error {
	if n == 0 {
		return Errorf(CodeEmptyBatchRequest, "There should be at least one %s in the request.", kind)
	}
	if n > MaxBatch {
		return Errorf(CodeTooManyEntriesInBatchRequest,
			"Maximum number of entries per request are %d. You have sent %d.", MaxBatch, n)
	}
	return nil
}

// CheckBatchSize rejects a batch whose messages together are too large.
func CheckBatchSize(bytes int) error {
	if bytes > MaxMessageSize {
		return Errorf(CodeBatchRequestTooLong, "Batch requests cannot be longer than %d bytes. You have sent %d bytes.",
			MaxMessageSize, bytes)
	}
	return nil
}

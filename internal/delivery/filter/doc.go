// Package filter decides by patterns which messages are delivered.
//
// A pattern is the one that AWS Lambda takes for an event source mapping of SQS, which is the one of Amazon
// EventBridge:
//
//	{"body": {"kind": ["order", {"prefix": "refund-"}], "total": [{"numeric": [">", 100]}]}}
//
// [Parse] compiles it once. [Filter.Match] then looks at one message: it reads the JSON of the body where it lies, as
// far as the pattern asks, and makes no values of it.
//
// # Rules
//
//   - All fields of an object must match; of the list at a field one is enough. "$or" is a list of objects of which
//     one must match.
//   - Where the message has an array, one of its elements must match. Of an array of objects one must match as a
//     whole.
//   - A pattern of fields for the body matches no body that is not JSON, and a list for the body no body that is: as
//     with Lambda, such messages do not match. JSON is an object or an array here.
//   - Numbers are compared as numbers: 300 matches 3e2. A message attribute of the type Number is a number and a
//     string.
//   - exists is about values, as in EventBridge, and an object has no value of its own.
//
// # What it does not do
//
// It deletes nothing and counts nothing: package worker does. The operators wildcard and cidr are refused, as Lambda
// has neither for SQS; the same goes for keys of a message other than body and messageAttributes.
package filter

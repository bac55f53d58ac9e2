// Package filter selects the messages to deliver by patterns.
//
// The patterns of an AWS Lambda event source mapping for SQS, and thus of Amazon EventBridge, are supported:
//
//	{"body": {"kind": ["order", {"prefix": "refund-"}], "total": [{"numeric": [">", 100]}]}}
//
// Matching reads a JSON body in place, and only as far as the pattern requires.
//
//   - All fields of an object must match, each with at least one item of its list. "$or" contains a list of objects, at
//     least one of which must match.
//   - One element of an array in the message must match; in an array of objects, a single object must match all fields.
//   - As in Lambda, an object as the pattern for the body matches only JSON objects and arrays, and a list matches only
//     other text.
//   - Numbers are compared numerically: 300 matches 3e2. A Number attribute is also compared as a string.
//   - The exists operator applies to values, as in EventBridge; an object is not a value.
//
// The operators wildcard and cidr, and keys other than body and messageAttributes, are rejected.
package filter

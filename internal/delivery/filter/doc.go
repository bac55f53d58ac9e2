// Package filter selects the messages to deliver by patterns.
//
// Patterns are those of an AWS Lambda event source mapping for SQS, which are Amazon EventBridge's:
//
//	{"body": {"kind": ["order", {"prefix": "refund-"}], "total": [{"numeric": [">", 100]}]}}
//
// Matching reads the JSON of a message body in place, without decoding it into Go values, and only as far as the
// pattern requires.
//
//   - All fields of an object must match, but only one item in a field's list. "$or" contains a list of objects, at
//     least one of which must match.
//   - If the message contains an array, at least one element must match. In an array of objects, a single object must
//     match all fields.
//   - As in Lambda, an object as the pattern for the body matches only JSON bodies, and a list matches only other text.
//     JSON here means an object or an array.
//   - Numbers are compared numerically: 300 matches 3e2. A message attribute of type Number is compared as a number and
//     as a string.
//   - The exists operator applies to values, as in EventBridge; an object does not count as a value.
//
// Other operators and message keys are rejected, because Lambda does not support them for SQS.
package filter

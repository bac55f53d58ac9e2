// Package filter selects the messages to deliver by patterns.
//
// Patterns are those of an AWS Lambda event source mapping for SQS, which are Amazon EventBridge's:
//
//	{"body": {"kind": ["order", {"prefix": "refund-"}], "total": [{"numeric": [">", 100]}]}}
//
// Matching reads the JSON of a message's body in place, as far as the pattern requires and without creating values.
//
//   - All fields of an object must match, but only one item of a field's list. "$or" is a list of objects,
//     and one of them must match.
//   - If the message has an array, one of its elements must match. In an array of objects, one must match as a whole.
//   - As in Lambda, a pattern of fields for the body only matches JSON, and a list for the body only matches other text.
//     JSON means an object or an array here.
//   - Numbers are compared numerically: 300 matches 3e2. A message attribute of type Number is compared as a number and as
//     a string.
//   - exists tests values, as in EventBridge, and an object is not a value.
//
// Other operators and message keys are rejected, because Lambda does not support them for SQS.
package filter

// Package sqswire holds what both ends of the SQS protocol write alike.
//
// SQS messages travel as JSON, with MD5 digests that tell a damaged message from
// a whole one. Three packages write that form: sqsapi answers clients in it, aws
// asks Amazon SQS in it, and deliver gives a Lambda function its event in it.
// This package has the parts that they share:
//
//   - [AppendString] writes a JSON string.
//   - [Reader] reads JSON: the requests that sqsapi serves, and the answers that aws gets.
//   - [BodyMD5] and [AttributesMD5] return the digests of a message body and of message
//     attributes, whose input SQS defines byte by byte.
//
// The digests guard against accident only, not against people.
package sqswire

// Package sqswire holds the encoding shared by clients and servers of SQS.
//
// SQS messages are JSON with MD5 digests that detect corruption. Package sqsapi serves this format, aws sends it to
// Amazon SQS, and deliver passes it to Lambda functions as events. They share:
//
//   - [AppendString] writes a JSON string.
//   - [Reader] reads JSON: requests to sqsapi, and responses to aws.
//   - [BodyMD5] and [AttributesMD5] return the digests of a body and of attributes.
//
// The digests protect against accidents, not against attacks.
package sqswire

// Package sqswire holds the encoding shared by clients and servers of SQS.
//
// SQS messages are JSON with MD5 digests that detect corruption, not attacks. Package sqsapi serves this format, aws
// sends it to Amazon SQS, and deliver passes it to Lambda functions as events.
package sqswire

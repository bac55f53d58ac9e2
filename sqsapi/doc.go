// Package sqsapi serves a broker over the SQS wire protocol.
package sqsapi

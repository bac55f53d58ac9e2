// Package deliver hands one message, or one batch, to an app over HTTP or to a Lambda function.
package deliver

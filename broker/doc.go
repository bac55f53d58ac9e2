// Package broker is a durable queue that behaves like SQS.
package broker

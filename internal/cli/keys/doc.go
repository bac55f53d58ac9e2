// Package keys creates, lists and revokes tokens of the console and key pairs of the endpoint.
package keys

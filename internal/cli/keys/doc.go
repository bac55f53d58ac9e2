// Package keys manages the tokens of the console and the key pairs of the endpoint.
package keys

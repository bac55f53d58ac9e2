// Package api holds the JSON types and a client of a running environment's console API, /api/v1.
//
// [Dial] finds the environment that runs on a data directory, proves that it is the right one and sends
// its token:
//
//	client, err := api.Dial("/var/lib/tendril/shop")
//	...
//	status, err := client.Status(ctx)
//
// The server uses the same types, so that a field has one name in Go, in the JSON and on the screen. A
// refusal is an [*Error], which says what is wrong and what to do instead. An error of a client that finds
// no environment wraps [ErrNotRunning].
package api

// Package api holds the JSON types and a client of a running environment's console API, /api/v1.
//
// [Dial] finds the environment on a data directory and verifies its identity before it sends the token:
//
//	client, err := api.Dial("/var/lib/tendril/shop")
//	...
//	status, err := client.Status(ctx)
//
// The server uses the same types. A refused request returns an [*Error] with a hint. If no environment runs, errors
// wrap [ErrNotRunning].
package api

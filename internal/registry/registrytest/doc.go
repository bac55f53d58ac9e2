// Package registrytest checks implementations of a registry.
//
// Every store runs the suites [Leases] and [Runs] in its own package, and so does the HTTP client.
package registrytest

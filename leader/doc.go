// Package leader keeps at most one instance in charge by holding a lease.
package leader

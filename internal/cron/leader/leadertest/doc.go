// Package leadertest has a lease store in memory that fails when a test says so.
package leadertest

// Package leadertest checks that something behaves like a lease store.
//
// [Run] is one suite of named cases. Every implementation of the store (the
// embedded broker's, DynamoDB's, the one in memory that the elector's own tests
// use) calls it from a test of its own package:
//
//	func TestLeases(t *testing.T) {
//		leadertest.Run(t, func(t testing.TB) leadertest.Store { return openStore(t) })
//	}
//
// # What it does not do
//
// It does not test how a store behaves when its database is away: that is
// different for each, and so tested with each.
package leadertest

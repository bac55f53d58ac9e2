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
// # What it holds a store to
//
//   - A lease comes back field by field as it was written.
//   - A swap compares the Version and nothing else, and exactly one of any
//     number of swaps from the same Version wins.
//   - Who loses is told what is stored instead.
//   - A swap that is repeated because its answer was lost has won.
//   - A context that has ended is obeyed.
//
// # What it does not do
//
// It does not test how a store behaves when its database is away: that is
// different for each, and so tested with each.
package leadertest

// Package registrytest checks that something behaves like a registry.
//
// [Leases] and [Runs] are suites of named cases. Every store calls them from a test of its own package, and so does the
// HTTP client, whose server passes them with the broker:
//
//	func TestRegistry(t *testing.T) {
//		store := openStore(t)
//		registrytest.Leases(t, func(testing.TB) registrytest.LeaseStore { return registry.NewLeases(store) })
//		registrytest.Runs(t, func(_ testing.TB, scope registry.Scope) registrytest.Registry {
//			return registry.NewRuns(store, scope)
//		}, registry.NewLeases(store))
//	}
//
// # What it does not do
//
// It does not test how a store behaves when its database is away: that is different for each, and so tested with each.
package registrytest

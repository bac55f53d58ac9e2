// Package registrytest checks implementations of a registry.
//
// Every store runs the suites [Leases] and [Runs] in its own package. The HTTP client runs them against a server with
// a broker:
//
//	func TestRegistry(t *testing.T) {
//		store := openStore(t)
//		registrytest.Leases(t, func(testing.TB) registrytest.LeaseStore { return registry.NewLeases(store) })
//		registrytest.Runs(t, func(_ testing.TB, scope registry.Scope) registrytest.Registry {
//			return registry.NewRuns(store, scope)
//		}, registry.NewLeases(store))
//	}
//
// Failures of a store's database are specific to the store and tested with it.
package registrytest

// Package registrytest checks implementations of a registry.
//
// Every store runs the suites [Leases] and [Runs] in its own package, and so does the HTTP client:
//
//	func TestRegistry(t *testing.T) {
//		store := openStore(t)
//		registrytest.Leases(t, func(testing.TB) registrytest.LeaseStore { return registry.NewLeases(store) })
//		registrytest.Runs(t, func(_ testing.TB, scope registry.Scope) registrytest.Registry {
//			return registry.NewRuns(store, scope)
//		}, registry.NewLeases(store))
//	}
package registrytest

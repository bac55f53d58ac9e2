package main

import "slices"

// users are the packages whose tests count for a package as well, because it is tested there, as it is used.
var users = map[string][]string{
	"app":               {"environment"},
	"depth":             {"environment"},
	"fleet":             {"environment"},
	"leader/leadertest": {"leader"},
}

// withUsers returns the packages and those whose tests count for them.
func withUsers(packages []string) []string {
	all := slices.Clone(packages)
	for _, pkg := range packages {
		for _, user := range users[pkg] {
			if !slices.Contains(all, user) {
				all = append(all, user)
			}
		}
	}
	return all
}

// countedBy returns the packages for which the tests of a package count.
func countedBy(pkg string) []string {
	counted := []string{pkg}
	for used, by := range users {
		if slices.Contains(by, pkg) {
			counted = append(counted, used)
		}
	}
	return counted
}

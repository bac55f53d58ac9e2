package main

import "slices"

// users are the packages whose tests count for a package as well, because it is tested there, as it is used: environments
// start apps, tasks and fleets as the settings say, and the scripts of cmd/tendril start environments.
var users = map[string][]string{
	"internal/app":                    {"internal/environment", "cmd/tendril"},
	"internal/testing/faultfs":        {"broker"},
	"internal/environment/depth":      {"internal/environment"},
	"internal/environment":            {"cmd/tendril"},
	"internal/autoscale/fleet":        {"internal/environment"},
	"internal/cron/leader/leadertest": {"internal/cron/leader"},
	"internal/cron/tasks":             {"internal/environment", "cmd/tendril"},
	"internal/testing/testpeer":       {"internal/aws", "queuetest", "internal/sqsapi"},
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

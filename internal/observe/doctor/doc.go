// Package doctor turns facts about an environment and its machine into findings with remedies.
//
//	settings in force, attributes of queues ──┐
//	answers of servers: Date, Server ─────────┤──> Facts ──Examine──> []Finding
//	this machine: disk, files, ports, zones ──┘
//
// [Examine] is a pure function of the [Facts] and skips unknown facts.
package doctor

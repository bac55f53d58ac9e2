// Package doctor turns facts about an environment and its machine into findings with remedies.
//
// Most real problems lie between the settings and their surroundings: a queue with conflicting attributes, a role
// without a permission, a wrong clock, a full disk, an occupied port.
//
//	settings in force, attributes of queues ──┐
//	answers of servers: Date, Server ─────────┤──> Facts ──Examine──> []Finding
//	this machine: disk, files, ports, zones ──┘
//
// [Examine] is a pure function of the [Facts], so each rule is one row in a table test. Rules skip unknown facts. The
// other functions inspect the machine without leaving changes.
//
// An error means that messages are stuck or lost. A warning predicts such an error, or means that messages may be
// processed twice. Passed checks are findings, too.
package doctor

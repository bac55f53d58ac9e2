// Package doctor turns facts about an environment and its machine into findings with remedies.
//
// A check of the settings alone says whether a value is allowed. What goes wrong in practice is between the settings
// and the world: a queue whose own attributes contradict them, a role without a permission, a clock that is minutes
// off, a full disk, a port that somebody else has.
//
//	settings in force, attributes of queues ──┐
//	answers of servers: Date, Server ─────────┤──> Facts ──Examine──> []Finding
//	this machine: disk, files, ports, zones ──┘
//
// [Examine] is pure: a function of the [Facts] alone, so that each rule is a row of a table in its test. What is not
// known is left out of the facts and judged by no rule. The other functions look at the machine: [LookAtDisk],
// [LookAtCertificate], [LookAtServer], [LookForProxy]. None of them changes anything that stays.
//
// # Findings
//
// Each [Finding] has a level. An error stops messages or loses them; a warning will, one day, or makes them run twice;
// what is in order is a finding too, so that a reader sees what was looked at. A finding that is not in order says
// what is so, what follows from it, and what to type.
//
// Package environment collects the facts, for a running process and for one that would be started, and logs the
// findings about a queue on Amazon SQS at its start.
package doctor

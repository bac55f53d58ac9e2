package main

import (
	"path/filepath"
	"slices"
)

// core is a package, or those files of it, whose tests are measured.
type core struct {
	pkg   string   // folder from the root
	files []string // names without .go; none means all
	skip  string   // tests that are left out, as a regular expression
}

// cores decide what happens to messages, tasks and instances: functions of (state, input, now) and the loops on them.
var cores = []core{
	{pkg: "internal/delivery/webhook"},
	{pkg: "internal/delivery/envelope"},
	{pkg: "internal/delivery/filter"},
	{pkg: "internal/observe/health"},
	{pkg: "internal/delivery/limit"},
	{pkg: "internal/cron/leader"},
	{pkg: "internal/autoscale", skip: "^TestSimulation$"}, // takes a minute
	{pkg: "internal/app", files: []string{"detector"}},
	{pkg: "internal/cron/periodic"},
	{pkg: "internal/worker", files: []string{"decision", "settle", "options"}}, // what becomes of a message, order, back-off
	{pkg: "broker", files: []string{"visibility", "fifo", "send"}, // send has deduplication
		skip: "^Test(EveryCallFails|EnqueueIsAtomic|PowerFailure|Kill|DamagedFile|LogStaysBounded)$"}, // slow, of the disk
	{pkg: "internal/delivery/deliver", files: []string{"target", "header", "outcome", "steer", "status", "lambda_event", "lambda_outcome",
		"lambda_reply", "batch", "syntax", "refusal"}},
	{pkg: "internal/sqsapi", files: []string{"decode", "json", "parameters", "query"},
		skip: "^Test(LongPollsCostLittleMemory)$|Boto3|Celery|CommandLine|Java|PHP|Ruby|" +
			"NodeFetch|SQSConsumer"}, // costs, and foreign clients
}

func (c core) counts(file string) bool {
	name := file[:len(file)-len(filepath.Ext(file))]
	return len(c.files) == 0 || slices.Contains(c.files, name)
}

// missing returns the files that the core names and the package does not have.
func (c core) missing(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(c.files), func(name string) bool {
		return slices.ContainsFunc(paths, func(path string) bool { return filepath.Base(path) == name+".go" })
	})
}

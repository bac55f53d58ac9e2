package main

import (
	"path/filepath"
	"slices"
)

type core struct {
	pkg   string   // relative to the repository's root
	files []string // without .go; empty means all files
	skip  string
}

var cores = []core{
	{pkg: "internal/delivery/webhook"},
	{pkg: "internal/delivery/envelope"},
	{pkg: "internal/delivery/filter"},
	{pkg: "internal/observe/health"},
	{pkg: "internal/delivery/limit"},
	{pkg: "internal/cron/leader"},
	{pkg: "internal/autoscale", skip: "^TestSimulation$"},
	{pkg: "internal/app", files: []string{"detector"}},
	{pkg: "internal/cron/periodic"},
	{pkg: "internal/worker", files: []string{"decision", "settle", "options"}},
	{pkg: "broker", files: []string{"visibility", "fifo", "send"},
		skip: "^Test(EveryCallFails|EnqueueIsAtomic|PowerFailure|Kill|DamagedFile|LogStaysBounded)$"},
	{pkg: "internal/delivery/deliver", files: []string{"target", "header", "outcome", "steer", "status", "lambda_event", "lambda_outcome",
		"lambda_reply", "batch", "syntax", "refusal"}},
	{pkg: "internal/sqsapi", files: []string{"decode", "json", "parameters", "query"},
		skip: "^Test(LongPollsCostLittleMemory)$|Boto3|Celery|CommandLine|Java|PHP|Ruby|" +
			"NodeFetch|SQSConsumer"},
}

func (c core) counts(file string) bool {
	name := file[:len(file)-len(filepath.Ext(file))]
	return len(c.files) == 0 || slices.Contains(c.files, name)
}

func (c core) missing(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(c.files), func(name string) bool {
		return slices.ContainsFunc(paths, func(path string) bool { return filepath.Base(path) == name+".go" })
	})
}

package main

import "fmt"

type setting struct{ benchmark, label string }

var settings = []setting{
	{"c=10/api=10ms/think=10ms", "10, 10 ms, 10 ms"},
	{"c=50/api=10ms/think=10ms", "50, 10 ms, 10 ms"},
	{"c=10/api=0s/think=0s", "10, 0, 0"},
	{"c=50/api=0s/think=0s", "50, 0, 0"},
	{"c=10/api=10ms/think=0s", "10, 10 ms, 0"},
}

type program struct{ benchmark, label string }

// daemons receive messages and post them; servers implement the SQS protocol.
var (
	daemons = []program{{"tendril", "tendril"}, {"go-sdk-loop", "SDK for Go"},
		{"sqs-consumer", "sqs-consumer"}, {"camel", "Apache Camel"}}
	servers = []program{{"tendril/json", "tendril, JSON"}, {"tendril/query", "tendril, Query"},
		{"goaws/query", "GoAws, Query"}, {"elasticmq/json", "ElasticMQ, JSON"}, {"moto/json", "moto, JSON"}}
)

var tables = []table{
	daemonTable(),
	daemonsTable("daemons-share", "%ceiling", "%s %%"),
	daemonsTable("daemons-cpu", "cpu-µs/msg", "%s µs"),
	idleTable(),
	serversTable(),
	{name: "parts", columns: []string{"part", "figure"}, rows: []row{
		one("worker with stubs, 50 slots: CPU time per message",
			"worker.Overhead/50_slots", "cpu-ns/op", "%s µs", 1e-3),
		one("the same: allocations", "worker.Overhead/50_slots", "allocs/op", "%s", 0),
		one("one POST (`deliver`), 10 connections, with the app",
			"deliver.Deliver/10", "cpu-µs/POST", "%s µs", 0),
		one("`http.Client`, relative to it", "deliver.Deliver/10", "cpu-ratio", "%s times", 0),
		one("SQS client (`aws`), receive and delete in batches of ten: CPU time per message",
			"aws.ReceiveDelete/loopback/lean", "cpu-ns/msg", "%s µs", 1e-3),
		one("the same with the SDK's client", "aws.ReceiveDelete/loopback/sdk", "cpu-ns/msg", "%s µs", 1e-3),
	}},
	{name: "wire", columns: []string{"call", "by time", "by CPU time"}, rows: []row{
		canned("receive + delete, 1 caller", "ReceiveDelete/single/1"),
		canned("receive + delete, 16 callers", "ReceiveDelete/single/16"),
		canned("receive + delete in batches of ten, 1 caller", "ReceiveDelete/ten/1"),
		canned("receive + delete in batches of ten, 16 callers", "ReceiveDelete/ten/16"),
		canned("send, 1 caller", "Send/single/1"),
		canned("send, 16 callers", "Send/single/16"),
		canned("the same, append-and-sync server", "Least/single/16"),
		canned("send in batches of ten, 1 caller", "Send/ten/1"),
		canned("send in batches of ten, 16 callers", "Send/ten/16"),
		canned("the same, append-and-sync server", "Least/ten/16"),
	}},
	{name: "store", columns: []string{"measure", "target", "result"}, rows: []row{
		targeted("durable send of 200 B, 1 caller", "0.7 F", "broker.Send/callers=1/size=200", "xF", "%s F"),
		targeted("the same, 16 callers", "5 F", "broker.Send/callers=16/size=200", "xF", "%s F"),
		targeted("durable send of 10 KB, 16 callers", "2 F", "broker.Send/callers=16/size=10000", "xF", "%s F"),
		targeted("durable send over HTTP, 1 caller, relative to one bare call plus one fsync", "80 %", "sqsapi.Sender", "%row",
			"%s %%"),
		targeted("receive + delete from 1 M, in batches of ten", "5 P", "broker.Drain", "xP", "%s P"),
		targeted("the same: CPU time per message", "4 µs", "broker.Drain", "cpu-us/msg", "%s µs"),
		targeted("whole path, draining", "0.75 P", "broker.WholePath/producers=0", "xP", "%s P"),
		targeted("whole path with 64 durable producers", "0.55 P", "broker.WholePath/producers=64", "xP", "%s P"),
		targeted("their sends per second", "", "broker.WholePath/producers=64", "sent/s", "%s"),
		targeted("whole path with 16 durable producers", "0.35 P", "broker.WholePath/producers=16", "xP", "%s P"),
		targeted("their sends per second", "", "broker.WholePath/producers=16", "sent/s", "%s"),
		targeted("CPU time per message, all calls at once", "12 µs", "broker.MixedCPU", "cpu-us/msg",
			"%s µs"),
		targeted("resident memory at 1 M", "150 MB", "broker.Depth", "rss-MB", "%s MB"),
		targeted("resident memory at 1 M, relative to 100 k", "1.5 times", "broker.Depth", "rss-ratio", "%s times"),
		targeted("reopen after kill -9", "100 ms", "broker.Depth", "reopen-ms", "%s ms"),
		targeted("disk use after draining 1 M, relative to the peak", "5 %", "broker.Depth", "disk-%", "%s %%"),
	}},
	tenantsTable(),
	{name: "console", columns: []string{"measure", "target", "result"}, rows: []row{
		targeted("throughput with 20 live pages open, app takes 10 ms", "95 %", "bench.Watched/think=10ms",
			"%unwatched", "%s %%"),
		targeted("throughput of failing messages, attempts kept", "90 %", "environment.Failing", "%", "%s %%"),
		targeted("the same by CPU time", "", "environment.Failing", "%-by-cpu", "%s %%"),
		targeted("throughput with all log lines, metrics and traces, 10 ms, 10 ms", "95 %",
			"bench.Observed/everything/c=50/api=10ms/think=10ms", "%silent", "%s %%"),
		targeted("CPU time they add per message, 0, 0", "",
			"bench.Observed/everything/c=50/api=0s/think=0s", "more-cpu-µs/msg", "%s µs"),
		targeted("the same without traces", "", "bench.Observed/without_traces/c=50/api=0s/think=0s", "more-cpu-µs/msg",
			"%s µs"),
		targeted("a page of 10<sup>5</sup> dead letters", "200 ms", "web.DeadLettersPage/100000", "page-ms", "%s ms"),
		targeted("the same with a filter that matches nothing", "200 ms", "web.DeadLettersPage/100000", "nothing-ms",
			"%s ms"),
		targeted("redrive of all of them, messages per second", "", "web.DeadLettersPage/100000", "redriven/s", "%s"),
	}},
}

func one(label, benchmark, unit, format string, scale float64) row {
	return row{[]string{label}, []cell{{benchmark, unit, format, scale}}}
}

func targeted(label, target, benchmark, unit, format string) row {
	return row{[]string{label, target}, []cell{{benchmark, unit, format, 0}}}
}

func canned(label, benchmark string) row {
	return row{[]string{label}, []cell{{"sqsapi." + benchmark, "%canned", "%s %%", 0},
		{"sqsapi." + benchmark, "%canned-cpu", "%s %%", 0}}}
}

func daemonTable() table {
	t := table{name: "daemon", columns: []string{"connections, API, app", "share of the ceiling", "messages/s",
		"CPU time per message", "calls per message", "peak memory"}}
	for _, s := range settings {
		name := "bench.Daemon/" + s.benchmark + "/tendril"
		t.rows = append(t.rows, row{[]string{s.label}, []cell{{name, "%ceiling", "%s %%", 0}, {name, "msg/s", "%s", 0},
			{name, "cpu-µs/msg", "%s µs", 0}, {name, "calls/msg", "%s", 0}, {name, "peak-MB", "%s MB", 0}}})
	}

	for _, c := range []int{10, 50} {
		name := fmt.Sprint("bench.Embedded/c=", c)
		t.rows = append(t.rows, row{[]string{fmt.Sprintf("%d, embedded queue, 0", c)}, []cell{
			{name, "%ceiling", "%s %%", 0}, {name, "msg/s", "%s", 0}, {name, "cpu-µs/msg", "%s µs", 0},
			{format: "none"}, {name, "peak-MB", "%s MB", 0}}})
	}
	return t
}

func daemonsTable(name, unit, format string) table {
	t := table{name: name, columns: []string{"connections, API, app"}}
	for _, s := range settings {
		t.columns = append(t.columns, s.label)
	}

	for _, d := range daemons {
		r := row{texts: []string{d.label}}
		for _, s := range settings {
			r.cells = append(r.cells, cell{"bench.Daemon/" + s.benchmark + "/" + d.benchmark, unit, format, 0})
		}
		t.rows = append(t.rows, r)
	}
	return t
}

func idleTable() table {
	t := table{name: "idle", columns: []string{"daemon", "first receive after", "polls per minute", "CPU",
		"resident memory", "exit after SIGTERM"}}
	for _, d := range daemons {
		name := "bench.Idle/" + d.benchmark
		t.rows = append(t.rows, row{[]string{d.label}, []cell{{name, "start-ms", "%s ms", 0}, {name, "polls/min", "%s", 0},
			{name, "%cpu", "%s %%", 0}, {name, "MB", "%s MB", 0}, {name, "exit-ms", "%s ms", 0}}})
	}
	return t
}

func serversTable() table {
	t := table{name: "servers", columns: []string{"server, protocol", "sent/s", "sent in batches of ten/s",
		"received and deleted/s",
		"CPU time per send", "the same in batches of ten", "CPU time per receive and delete", "resident memory"}}
	for _, s := range servers {
		name := "bench.Endpoint/" + s.benchmark
		t.rows = append(t.rows, row{[]string{s.label}, []cell{{name, "send/s", "%s", 0}, {name, "send-ten/s", "%s", 0},
			{name, "receive-delete/s", "%s", 0}, {name, "send-cpu-µs/msg", "%s µs", 0},
			{name, "send-ten-cpu-µs/msg", "%s µs", 0}, {name, "receive-delete-cpu-µs/msg", "%s µs", 0},
			{name, "MB", "%s MB", 0}}})
	}
	return t
}

func tenantsTable() table {
	t := table{name: "tenants", columns: []string{"tenants", "median time to receive ten at 10<sup>4</sup>",
		"at 10<sup>6</sup>", "ratio", "resident memory"}}
	for _, p := range []program{{"none", "none"}, {"one-large", "one with 90 % of the messages, ten others"}, {"10", "10"},
		{"10000", "10<sup>4</sup>"}, {"1000000", "10<sup>6</sup>, one message each"}} {
		name := "broker.ReceiveLatency/tenants=" + p.benchmark
		t.rows = append(t.rows, row{[]string{p.label}, []cell{{name, "shallow-us", "%s µs", 0}, {name, "deep-us", "%s µs", 0},
			{name, "ratio", "%s", 0}, {name, "rss-MB", "%s MB", 0}}})
	}
	return t
}

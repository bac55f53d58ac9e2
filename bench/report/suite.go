package main

type step struct {
	name                  string
	pkg, bench, benchtime string
	// rounds is the number of rounds with this step; 0 means all. Slow steps run in fewer.
	rounds int
	// depth is the initial number of messages in the store's depth benchmarks; 0 means 1,000,000. It is appended to
	// figures' names: "broker.Depth@10000000".
	depth int
	// scale marks steps of docs/scale.md, which require -scale.
	scale bool
}

var suite = []step{
	{name: "daemon-c10", pkg: "bench", bench: "^BenchmarkDaemon$/^c=10$/^api=0s$", benchtime: "1x"},
	{name: "daemon-c50", pkg: "bench", bench: "^BenchmarkDaemon$/^c=50$/^api=0s$", benchtime: "1x"},
	{name: "daemon-c10-api", pkg: "bench", bench: "^BenchmarkDaemon$/^c=10$/^api=10ms$/^think=0s$", benchtime: "1x"},
	{name: "daemon-c10-api-think", pkg: "bench", bench: "^BenchmarkDaemon$/^c=10$/^api=10ms$/^think=10ms$",
		benchtime: "1x"},
	{name: "daemon-c50-api-think", pkg: "bench", bench: "^BenchmarkDaemon$/^c=50$/^api=10ms$", benchtime: "1x"},
	{name: "embedded", pkg: "bench", bench: "^BenchmarkEmbedded$", benchtime: "1x"},
	{name: "idle", pkg: "bench", bench: "^BenchmarkIdle$", benchtime: "1x", rounds: 1},
	{name: "endpoints", pkg: "bench", bench: "^BenchmarkEndpoint$", benchtime: "1x"},
	{name: "worker", pkg: "internal/worker", bench: "^BenchmarkOverhead$", benchtime: "300ms"},
	{name: "deliver", pkg: "internal/delivery/deliver", bench: "^BenchmarkDeliver$", benchtime: "500ms"},
	{name: "client", pkg: "internal/aws", bench: "^BenchmarkReceiveDelete$", benchtime: "300ms"},
	{name: "wire", pkg: "internal/sqsapi", bench: "^Benchmark(Send|Sender|Least|ReceiveDelete)$", benchtime: "2000x"},
	{name: "store-send", pkg: "broker", bench: "^BenchmarkSend$", benchtime: "10000x"},
	{name: "store-path", pkg: "broker", bench: "^Benchmark(WholePath|MixedCPU)$", benchtime: "1x"},
	{name: "store-drain", pkg: "broker", bench: "^BenchmarkDrain$", benchtime: "1x", rounds: 1},
	{name: "store-depth", pkg: "broker", bench: "^BenchmarkDepth$", benchtime: "1x", rounds: 1},
	{name: "watched", pkg: "bench", bench: "^BenchmarkWatched$/^think=10ms$", benchtime: "1x", rounds: 1},
	{name: "observed", pkg: "bench", bench: "^BenchmarkObserved$", benchtime: "1x", rounds: 1},
	{name: "failing", pkg: "internal/environment", bench: "^BenchmarkFailing$", benchtime: "1x"},
	{name: "dead-letters", pkg: "internal/console/web", bench: "^BenchmarkDeadLettersPage$/^100000$", benchtime: "1x", rounds: 1},
	{name: "scale-depth", pkg: "broker", bench: "^BenchmarkDepth$", benchtime: "1x", rounds: 1, depth: 10_000_000,
		scale: true},
	{name: "scale-tenants", pkg: "broker", bench: "^BenchmarkReceiveLatency$", benchtime: "1x", rounds: 1, scale: true},
	{name: "scale-queues", pkg: "broker", bench: "^BenchmarkQueues$", benchtime: "1x", scale: true},
	{name: "scale-groups", pkg: "broker", bench: "^BenchmarkGroups$", benchtime: "1x", scale: true},
}

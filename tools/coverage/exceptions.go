package main

// exceptions are packages that may be below the bound, each with the reason.
var exceptions = map[string]string{
	"bench/report": "most of it runs the benchmarks for an hour, and installs the programs that they are compared with",
}

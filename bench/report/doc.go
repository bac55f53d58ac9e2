// Command report measures tendril and the programs it is compared with, and writes the tables and plots of the
// documents.
//
//	go run ./bench/report -install          install the programs it is compared with, into a cache folder
//	go run ./bench/report                   run all benchmarks in three rounds and print the tables
//	go run ./bench/report -write            the same, and write the tables and plots into docs
//	go run ./bench/report -draw -write      write them once more, from the results that are there
//	go run ./bench/report -scale -write     run the benchmarks of docs/scale.md, which take many minutes
//
// A round runs each step of the suite once, so that what changes on the machine during a run meets all of them. The
// results are kept as a file in the format of Go's benchmarks (bench/results.txt), which benchstat reads too. A run
// that was interrupted goes on where it ended, as long as the commit is the same.
//
// The flow is: suite.go says which benchmarks there are, run.go runs them, results.go reads what they printed,
// tables.go says what the documents show of it, table.go and plot.go draw that, documents.go puts it between the
// markers of the documents:
//
//	<!-- report: daemon -->
//	<!-- end of report -->
//
// Where the markers name a benchmark ("broker.Groups") instead of a table, it becomes a table of all that it measured.
//
// Every step records how much of the processors other programs used meanwhile. The report says so, and calls its
// figures provisional when that was much.
package main

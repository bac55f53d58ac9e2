// Command report benchmarks tendril and comparable programs, and updates the tables in docs.
//
//	go run ./bench/report -install          install the comparable programs into a cache folder
//	go run ./bench/report                   run the benchmarks in three rounds and print the tables
//	go run ./bench/report -write            the same, and write the tables into docs
//	go run ./bench/report -draw -write      write the tables from existing results
//	go run ./bench/report -scale -write     run the benchmarks of docs/scale.md, which take many minutes
//
// A round runs each step once, so that changing load on the machine affects all steps alike. Results are stored in Go's
// benchmark format (bench/results.txt). An interrupted run continues where it stopped if the commit is unchanged. If
// other programs used much processor time, the report calls the figures provisional.
//
// Tables are inserted between markers, which name a table or a benchmark ("broker.Groups"):
//
//	<!-- report: daemon -->
//	<!-- end of report -->
package main

// Command mutation measures the tests of the packages that decide: it changes one operator of their code at a time and
// counts the changes that no test notices.
//
//	go run -C tools ./mutation                  every core, at night
//	go run -C tools ./mutation health webhook   these packages
//
// With -specification it makes the sentences of docs/specification.md false instead, one at a time:
//
//	go run -C tools ./mutation -specification           every row, at night
//	go run -C tools ./mutation -specification A10 D16   these rows
//
// It prints the mutants that survived, timed out or were never executed when they are found, a line for each core when
// it is done, and a table at the end. It fails when fewer than 95 % of the executed mutants were noticed, or more than
// 5 % of all were not executed. Tests that time out with a mutant run once more, six times as long. Equivalent mutants,
// which no test can notice, are listed with their reason in equivalent.go and left out of the figures; an entry that
// matches no surviving mutant is a failure too.
//
// # Steps
//
//	cores     which files of which packages           cores.go
//	mutants   every operator of them, with its place  mutants.go
//	rewrite   one program that holds all mutants      rewrite.go, switch.go.txt
//	suite     which tests execute which mutants       suite.go
//	run       the tests of each mutant                suite.go
//	report    the table, and what failed              report.go
//
// For the specification: sentences.go finds the functions and writes the program, specification.go runs the tests.
//
// # Mutants
//
//	boundary    a < b   becomes a <= b, and so on
//	negation    a < b   becomes a >= b; a == b becomes a != b
//	arithmetic  a + b   becomes a - b; a * b becomes a / b; a % b becomes a * b
//	increment   a++     becomes a--
//	negative    -a      becomes a
//
// Constant declarations and strings are left alone. All mutants of a package are compiled into one test binary, and an
// environment variable chooses the one that takes effect, so that a mutant costs the run of the tests that execute it
// and no build.
package main

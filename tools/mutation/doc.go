// Command mutation tests the tests of the core packages: it changes one operator at a time and counts changes that no
// test detects.
//
//	go run -C tools ./mutation                  every core, at night
//	go run -C tools ./mutation health webhook   these packages
//
// With -specification it instead breaks statements of docs/specification.md, one at a time:
//
//	go run -C tools ./mutation -specification           every row, at night
//	go run -C tools ./mutation -specification A10 D16   these rows
//
// It fails if tests detect fewer than 95 % of the executed mutants, or more than 5 % of all mutants are not executed.
// Tests that time out are repeated with six times the limit. equivalent.go lists mutants that no test can detect; they
// are excluded from the figures. An entry that matches no surviving mutant is an error.
//
// # Steps
//
//	cores     packages and files                      cores.go
//	mutants   operators and their positions           mutants.go
//	rewrite   a program with all mutants              rewrite.go, switch.go.txt
//	suite     mutants executed by each test           suite.go
//	run       tests of each mutant                    suite.go
//	report    table and failures                      report.go
//
// For the specification, sentences.go writes the program and specification.go runs the tests.
//
// # Mutants
//
//	boundary    a < b   becomes a <= b, and so on
//	negation    a < b   becomes a >= b; a == b becomes a != b
//	arithmetic  a + b   becomes a - b; a * b becomes a / b; a % b becomes a * b
//	increment   a++     becomes a--
//	negative    -a      becomes a
//
// Constant declarations and strings are not mutated. All mutants of a package are compiled into one test binary, and
// an environment variable selects one, so that a mutant needs no build and only runs the tests that execute it.
package main

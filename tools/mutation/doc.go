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
// Tests that time out are repeated with six times the limit. equivalent.go lists mutants that no test can detect, which
// the figures exclude. An entry that matches no surviving mutant is an error.
//
//	boundary    a < b   becomes a <= b, and so on
//	negation    a < b   becomes a >= b; a == b becomes a != b
//	arithmetic  a + b   becomes a - b; a * b becomes a / b; a % b becomes a * b
//	increment   a++     becomes a--
//	negative    -a      becomes a
//
// Constant declarations and strings are not mutated. One test binary contains all mutants of a package, and an
// environment variable selects one. A mutant only runs the tests that execute it.
package main

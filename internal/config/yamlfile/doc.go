// Package yamlfile reads the small YAML files that people write, with the place of every value.
//
// The settings file, cron.yaml and the files of a source bundle are all read here:
//
//	root, problem := yamlfile.Read(data, &yamlfile.Options{Plain: true, MaxBytes: 64 << 10, ...})
//
// A [Node] keeps the text of a value as it was written, whatever type YAML sees in it: 010 and yes stay what they
// are. Each node and each key has its line and column, so that a [Problem] can name the place to fix.
//
// # Invariants
//
//   - What would keep a parser busy is refused before it is parsed: too many bytes, too many tokens, too deep nesting.
//   - Aliases share what they name, so that they expand nothing; the keys that merge keys stand for are counted.
//   - Without anchors, tags, merge keys, "? " keys and directives a file means the same to every reader: with
//     [Options.Plain] they are refused. The files of a bundle may have them.
//   - A problem repeats no value of the file: it may be half of a password that should have been in quotes.
//
// What it does not do: it knows no key. Which keys there are, which come twice and what their values mean is for the
// package that reads the file.
package yamlfile

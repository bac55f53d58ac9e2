// Package yamlfile reads the small YAML files that people write, with the place of every value.
//
// It reads the settings file, cron.yaml and the files of a source bundle:
//
//	root, problem := yamlfile.Read(data, &yamlfile.Options{Plain: true, MaxBytes: 64 << 10, ...})
//
// A [Node] keeps the text of a value as written, regardless of its YAML type: 010 and yes are not converted. Nodes
// and keys have a line and a column, so that a [Problem] can point at the place to fix.
//
// # Invariants
//
//   - Limits on bytes, tokens and nesting are checked before parsing, to protect the parser.
//   - Aliases share the node they refer to, so they do not expand. Keys from merge keys are copied, up to a limit.
//   - With [Options.Plain], anchors, tags, merge keys, "? " keys and directives are refused, so the file means the same
//     to every reader. Bundle files may contain them.
//   - Problems never repeat a value from the file: it may be half of a password that should have been quoted.
//
// The package does not know any keys. Its callers check unknown and duplicate keys and interpret the values.
package yamlfile

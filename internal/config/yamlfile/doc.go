// Package yamlfile reads the small YAML files that people write, with the place of every value.
//
// A [Node] keeps the text of a value as written, regardless of its YAML type: 010 and yes are not converted.
//
//   - Limits on bytes, tokens and nesting are checked before parsing, to protect the parser.
//   - Aliases share the node they refer to, so they do not expand. Keys from merge keys are copied, up to a limit.
//   - With [Options.PlainOnly], features that other parsers may read differently are refused.
//   - Problems never repeat a value from the file: it may be half of a password that should have been quoted.
//
// Callers check for unknown and duplicate keys.
package yamlfile

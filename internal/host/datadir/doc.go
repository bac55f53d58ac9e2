// Package datadir creates the data directory, and opens and replaces files in it.
//
// Write access by other users is rejected, because they could redirect writes with links. The package does not check
// parent directories, and does not protect against root.
package datadir

// Package datadir creates the data directory, and opens and replaces files in it.
//
// It rejects write access by other users, who could redirect writes with links. It neither checks parent directories
// nor protects against root.
package datadir

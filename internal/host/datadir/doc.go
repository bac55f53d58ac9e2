// Package datadir creates the data directory, and opens and replaces files in it.
//
// [Make] rejects a directory that a user other than root or the current one owns, or that other users can write to,
// because they could redirect writes with links. [OpenFile] creates files with mode 0600, and rejects symbolic links
// and anything else that is not a regular file.
//
// The package does not check parent directories, and does not protect against root.
package datadir

// Package datadir creates the data directory and its files, accessible only to their owner.
//
// The packages bundle, broker and console write there. A data directory that another user owns or can write to is
// rejected, since that user could redirect writes with links. Files are created with mode 0600 and opened only if
// they are regular files, never through a symbolic link.
//
// The package does not check the folders above the data directory, and does not protect against root.
package datadir
